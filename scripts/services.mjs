// Real servers for tests, the lab and the benchmark, on free loopback ports, in temporary folders, gone with the
// process that started them.
//
//   node scripts/services.mjs install [name…]   find or install the programs (all, when none is named)
//   node scripts/services.mjs start <name>      run one until Ctrl-C; prints its URL
import { fileURLToPath } from 'node:url'

import { chromium, program as chromiumProgram } from './services/chromium.mjs'
import { clockShim, program as cc } from './services/clock-shim.mjs'
import { curator, curatorObtainable } from './services/curator.mjs'
import { find, howToInstall, locate, obtainable } from './services/find.mjs'
import { mariadb, mysqlFlavour, program as mariadbProgram } from './services/mariadb.mjs'
import { memcached, program as memcachedProgram } from './services/memcached.mjs'
import { pgbouncer, program as pgbouncerProgram } from './services/pgbouncer.mjs'
import { postgres, program as postgresProgram } from './services/postgres.mjs'
import { redisCluster } from './services/redis-cluster.mjs'
import { program as redisProgram, redis } from './services/redis.mjs'
import { sentinel } from './services/sentinel.mjs'
import {
  fourLetters,
  program as zookeeperProgram,
  zookeeper,
  zookeeperEnsemble,
} from './services/zookeeper.mjs'

export { chromium, clockShim, memcached, redis, redisCluster, sentinel }
export { curator, fourLetters, zookeeper, zookeeperEnsemble }
export { mariadb, mysqlFlavour, pgbouncer, postgres }
export { redisCommand } from './services/wire.mjs'

/** What `start` knows, and the program each needs. A new server is one file in services/ and one row here. */
const SERVICES = {
  redis: { start: redis, program: redisProgram },
  sentinel: { start: sentinel, program: redisProgram },
  'redis-cluster': { start: redisCluster, program: redisProgram },
  memcached: { start: memcached, program: memcachedProgram },
  mariadb: { start: mariadb, program: mariadbProgram },
  postgres: { start: postgres, program: postgresProgram },
  zookeeper: { start: zookeeper, program: zookeeperProgram },
  'zookeeper-ensemble': { start: zookeeperEnsemble, program: zookeeperProgram },
}

const PROGRAMS = [
  ...new Set([
    ...Object.values(SERVICES).map(({ program }) => program),
    pgbouncerProgram,
    cc,
    chromiumProgram,
  ]),
]

/**
 * Whether tests that need this can run. In CI the answer is always yes, so that what is missing fails instead of
 * being left out.
 */
export function available(name) {
  if (name === 'curator') return process.env.CI === 'true' || curatorObtainable()
  const program = programNamed(name)
  return process.env.CI === 'true' || obtainable(program)
}

function programNamed(name) {
  const program = SERVICES[name]?.program ?? PROGRAMS.find((one) => one.name === name)
  if (program !== undefined) return program
  throw new Error(
    `unknown: ${name}; known: ${[...Object.keys(SERVICES), ...PROGRAMS.map((one) => one.name)].join(', ')}`,
  )
}

async function install(names) {
  const wanted = names.length === 0 ? PROGRAMS : [...new Set(names.map(programNamed))]
  const missing = []
  for (const program of wanted) {
    const found = await find(program).catch(() => undefined)
    if (found === undefined) missing.push(program)
    else if (names.length > 0)
      console.log(`${program.command}: ${locate(program) ?? `Docker image ${program.image}`}`)
  }
  if (missing.length === 0) return
  console.error(howToInstall(missing))
  // Asked for by name it is needed; before a test run at home the tests that need it are left out instead.
  if (names.length > 0 || process.env.CI === 'true') process.exitCode = 1
  else console.error('The tests that need the missing ones are skipped.')
}

async function start([name, ...args]) {
  const service = SERVICES[name]
  if (service === undefined) throw new Error(`unknown: ${name}; known: ${Object.keys(SERVICES).join(', ')}`)
  const server = await service.start({ args })
  console.log(
    [
      ...new Set(
        [server, ...(server.sentinels ?? []), ...(server.nodes ?? server.servers ?? [])].map(
          ({ url }) => url,
        ),
      ),
    ].join('\n'),
  )
  await new Promise((resolve) => {
    // A pending signal handler alone does not keep a process running.
    const stay = setInterval(() => {}, 60_000)
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => resolve(clearInterval(stay)))
  })
  await server.stop()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [command, ...args] = process.argv.slice(2)
  const commands = { install, start }
  if (commands[command] === undefined) {
    console.error('usage: node scripts/services.mjs install [name…] | start <name>')
    process.exitCode = 2
  } else {
    await commands[command](args).catch((error) => {
      console.error(error.message)
      process.exitCode = 1
    })
  }
}
