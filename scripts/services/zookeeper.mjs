import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

import { group, startAll } from './group.mjs'
import { freePort } from './ports.mjs'
import { launch } from './process.mjs'
import { until } from './wire.mjs'

/** @type {import('./find.mjs').Program} */
export const program = {
  name: 'zookeeper',
  // In the foreground it becomes the server's own process, so signals reach the right one.
  command: 'zkServer.sh',
  paths: ['/usr/share/zookeeper/bin', '/opt/homebrew/opt/zookeeper/libexec/bin'],
  apt: ['zookeeper'],
  brew: 'zookeeper',
  image: 'zookeeper:3.8',
}

const JARS = '/usr/share/java'
const MODULES = [
  'zookeeper',
  'netty-all',
  'netty-codec',
  'netty-resolver',
  'netty-transport-native-unix-common',
]
const LOGGER = `${JARS}/slf4j-simple.jar`

/** One server by itself. `config`: lines of its zoo.cfg, over those below. `java`: further options of its JVM. */
export function zookeeper({ config = {}, java = [], args = [], env, ...wish } = {}) {
  return launch(plan({ config, args }), { ...wish, env: environment(java, env) })
}

/** Several servers that elect a leader. Returns when every one of them serves. */
export async function zookeeperEnsemble({ size = 3, config = {}, java = [], env } = {}) {
  const ports = await Promise.all(Array.from({ length: 3 * size }, () => freePort()))
  const members = Object.fromEntries(
    Array.from({ length: size }, (_, index) => [
      `server.${index + 1}`,
      `127.0.0.1:${ports[size + index]}:${ports[2 * size + index]}`,
    ]),
  )
  const quorum = { initLimit: 40, syncLimit: 10, ...members, ...config }
  const start = (index) => () =>
    launch(plan({ config: quorum, id: index + 1 }), { port: ports[index], env: environment(java, env) })
  const servers = await startAll(Array.from({ length: size }, (_, index) => start(index)))
  try {
    await serving(servers)
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()))
    throw error
  }
  return group(servers, {
    servers,
    /** The server that leads now, if one does. */
    leader: () => withMode(servers, 'leader'),
    follower: () => withMode(servers, 'follower'),
    /** Waits until all that run serve clients again. */
    serving: () => serving(servers.filter(({ pid }) => pid !== undefined)),
  })
}

/** One of the short commands that a server answers on its client port and closes the connection after. */
export function fourLetters(at, word) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: at.host, port: at.port })
    let answer = ''
    socket.setTimeout(2_000, () => socket.destroy(new Error(`no answer from ${at.host}:${at.port}`)))
    socket.on('connect', () => socket.write(word))
    socket.on('data', (data) => (answer += data))
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}

/** @returns {import('./process.mjs').Plan} */
function plan({ config, args = [], id }) {
  const file = (dir) => join(dir, 'zoo.cfg')
  return {
    program,
    scheme: 'zookeeper',
    args: ({ dir }) => ['start-foreground', file(dir), ...args],
    ready: (at) => fourLetters(at, id === undefined ? 'srvr' : 'ruok').then(isReady, () => false),
    prepare: ({ dir, port }) => {
      const data = join(dir, 'data')
      mkdirSync(data)
      if (id !== undefined) writeFileSync(join(data, 'myid'), String(id))
      const lines = { ...defaults, dataDir: data, clientPort: port, ...config }
      writeFileSync(
        file(dir),
        Object.entries(lines)
          .map(([key, value]) => `${key}=${value}\n`)
          .join(''),
      )
    },
  }
}

const isReady = (answer) => answer.includes('imok') || answer.includes('Mode:')

const defaults = {
  clientPortAddress: '127.0.0.1',
  // Sessions are looked at once in a tick; short ones need a short one.
  tickTime: 200,
  minSessionTimeout: 300,
  maxSessionTimeout: 100_000,
  maxClientCnxns: 0,
  'admin.enableServer': false,
  '4lw.commands.whitelist': '*',
}

function environment(java, env) {
  const flags = [
    '-Xmx128m',
    // It lives for a minute at the most: what takes a server time to get fast in the long run is left out.
    '-XX:TieredStopAtLevel=1',
    '-XX:+UseSerialGC',
    '-Dzookeeper.extendedTypesEnabled=true',
    '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
    ...java,
  ]
  // The package's own class path has no logger that writes to where its caller can see it, and not all that TLS needs.
  // The last -cp wins.
  if (existsSync(LOGGER))
    flags.push('-cp', [LOGGER, ...MODULES.map((name) => `${JARS}/${name}.jar`)].join(':'))
  return { JMXDISABLE: 'true', JVMFLAGS: flags.join(' '), ...env }
}

function serving(servers) {
  const modes = () => Promise.all(servers.map((server) => fourLetters(server, 'srvr')))
  return until(async () => (await modes()).every((answer) => answer.includes('Mode:')), {
    what: 'ZooKeeper servers that serve',
  })
}

async function withMode(servers, mode) {
  for (const server of servers) {
    if (server.pid === undefined) continue
    const answer = await fourLetters(server, 'srvr').catch(() => '')
    if (answer.includes(`Mode: ${mode}`)) return server
  }
  return undefined
}
