// The servers that the lab hurts, one kind each: how to start it, and what can be done to it from inside.
import { chmodSync } from 'node:fs'
import { get } from 'node:http'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { createConnection } from 'mysql2/promise'
import pg from 'pg'

import {
  available,
  clockShim,
  mariadb,
  memcached,
  postgres,
  redis,
  redisCommand,
  sentinel,
  zookeeper,
  zookeeperEnsemble,
} from '../scripts/services.mjs'
import { startAll } from '../scripts/services/group.mjs'
import { launch } from '../scripts/services/process.mjs'

const CLI = fileURLToPath(new URL('../dist/cli/start.cjs', import.meta.url))

/** No database holds without its data, and only Redis has scripts to forget. */
const DATABASE = ['wipe', 'script-flush', 'failover']
/** Nor a command that ends connections. */
const PLAIN = [...DATABASE, 'client-kill']

export const STAGES = {
  redis: {
    program: 'redis',
    leaveOut: ['failover'],
    start: (env) => redis({ env, args: ['--appendonly', 'yes', '--appendfsync', 'always'] }),
    admin: (server) => ({
      flushScripts: () => redisCommand(server, 'SCRIPT', 'FLUSH'),
      dropConnections: () => redisCommand(server, 'CLIENT', 'KILL', 'TYPE', 'normal'),
    }),
  },
  // Its server, as far as it can be hurt, is the two of five that it can do without.
  quorum: {
    program: 'redis',
    leaveOut: ['wipe', 'clock-jump', 'client-kill', 'failover'],
    start: (env) => fiveRedis(env),
    admin: ({ nodes }) => ({
      flushScripts: () => Promise.all(nodes.map((node) => redisCommand(node, 'SCRIPT', 'FLUSH'))),
    }),
  },
  mysql: {
    program: 'mariadb',
    leaveOut: DATABASE,
    start: (env) => mariadb({ env }),
    admin: (server) => ({ dropConnections: () => dropMysql(server) }),
  },
  postgres: {
    program: 'postgres',
    leaveOut: DATABASE,
    start: (env) => postgres({ env }),
    admin: (server) => ({ dropConnections: () => dropPostgres(server) }),
  },
  zookeeper: { program: 'zookeeper', leaveOut: PLAIN, start: (env) => zookeeper({ env }) },
  memcached: {
    program: 'memcached',
    leaveOut: ['script-flush', 'client-kill'],
    start: (env) => memcached({ env }),
  },
  // Several servers of which one leads: only for what happens when that one dies.
  'zookeeper ensemble': {
    program: 'zookeeper',
    only: ['none', 'failover'],
    start: (env) => ensemble(env),
    admin: (servers) => ({ failover: () => newLeader(servers) }),
  },
  'redis sentinel': {
    program: 'redis',
    only: ['none', 'failover'],
    start: (env) => sentinels(env),
    admin: (group) => ({ failover: () => newPrimary(group) }),
  },
  holdfast: { leaveOut: PLAIN, start: (env) => lockServer({ env }) },
}

/** Whether this machine has, or can get, what it takes. */
export function hasStage(store) {
  const { program } = STAGES[store]
  return program === undefined || available(program)
}

/** A server, its clock if that can be moved, and its commands. */
export async function startStage(store) {
  const { start, admin } = STAGES[store]
  const clock = available('cc') ? await clockShim() : undefined
  // PostgreSQL does not run as root, and has to read its clock too.
  if (clock !== undefined) chmodSync(dirname(clock.env.HOLDFAST_CLOCK_FILE), 0o755)
  const server = await start(clock?.env ?? {})
  return {
    server,
    url: server.url,
    ...(clock === undefined ? {} : { clock }),
    ...(admin === undefined ? {} : { admin: admin(server) }),
    stop: async () => {
      await server.stop()
      clock?.dispose()
    },
  }
}

async function fiveRedis(env) {
  const start = () => redis({ env, args: ['--appendonly', 'yes', '--appendfsync', 'always'] })
  const nodes = await startAll(Array.from({ length: 5 }, () => start))
  const hosts = nodes.map(({ host, port }) => `${host}:${port}`).join(',')
  const minority = (act) => Promise.all(nodes.slice(0, 2).map(act))
  return {
    host: nodes[0].host,
    port: nodes[0].port,
    url: `redlock://${hosts}?setup=now`,
    nodes,
    minority: true,
    kill: (signal) => minority((node) => node.kill(signal)),
    restart: (options) => minority((node) => node.restart(options)),
    pause: () => minority((node) => node.pause()),
    resume: () => minority((node) => node.resume()),
    stop: () => Promise.all(nodes.map((node) => node.stop())),
  }
}

const places = (servers) => servers.map(({ host, port }) => `${host}:${port}`).join(',')

async function ensemble(env) {
  const all = await zookeeperEnsemble({ env })
  return { ...all, url: `zookeeper://${places(all.servers)}` }
}

async function newLeader(servers) {
  const old = await servers.leader()
  await old.kill('SIGKILL')
  await servers.serving()
  await old.restart()
  await servers.serving()
}

async function sentinels(env) {
  const all = await sentinel({ env })
  return { ...all, url: `redis+sentinel://${places(all.sentinels)}/${all.name}` }
}

async function newPrimary(group) {
  const old = await group.primary()
  await old.kill('SIGKILL')
  for (let now = old; now === undefined || now === old; now = await group.primary().catch(() => undefined))
    await sleep(50)
  await old.restart()
}

async function dropMysql({ url }) {
  const connection = await createConnection({ uri: url })
  try {
    const [rows] = await connection.query(
      "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND command <> 'Daemon'",
    )
    for (const { id } of rows) await connection.query(`KILL ${Number(id)}`).catch(() => undefined)
  } finally {
    connection.destroy()
  }
}

async function dropPostgres({ url }) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
    )
  } finally {
    await client.end()
  }
}

/** holdfast's own server, in a process of its own and with a memory on disk. */
function lockServer(wish) {
  return launch(
    {
      program: { name: 'holdfast-server', command: 'node', apt: [], brew: 'node' },
      args: ({ port, dir }) => [CLI, 'serve', '--listen', `127.0.0.1:${port}`, '--state', join(dir, 'state')],
      ready: ({ port }) => answers(`http://127.0.0.1:${port}/v1/ready`),
      scheme: 'holdfast',
    },
    wish,
  )
}

function answers(url) {
  return new Promise((resolve) => {
    const request = get(url, { timeout: 1000 }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.on('error', () => resolve(false)).on('timeout', () => request.destroy())
  })
}
