// The servers that a run needs, by store: started on free loopback ports, stopped at the end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import {
  curator,
  fourLetters,
  mariadb,
  memcached,
  postgres,
  redis,
  zookeeper,
} from '../../scripts/services.mjs'
import { ask } from '../../scripts/services/wire.mjs'
import { isBuilt, pathOf } from '../contestants/dist.mjs'
import { NO_METER, ProcessMeter, RedisMeter } from './meter.mjs'

/**
 * @typedef {object} Running
 * @property {string} url
 * @property {any} meter
 * @property {() => Promise<string>} version
 * @property {() => unknown} stop
 */

const launched = (server, version) => ({
  url: server.url,
  meter: new ProcessMeter(() => server.pid),
  version,
  stop: () => server.stop(),
})

/** @type {Record<string, () => Promise<Running>>} */
export const SERVERS = {
  async redis() {
    const server = await redis()
    const meter = new RedisMeter(server.url)
    return { url: server.url, meter, version: () => meter.version(), stop: () => server.stop() }
  },
  /** Five of them, of which the first can be made to stand still. */
  async redlock() {
    const servers = await Promise.all(Array.from({ length: 5 }, () => redis()))
    const [first] = servers
    return {
      url: `redlock://${servers.map(({ host, port }) => `${host}:${port}`).join(',')}`,
      meter: NO_METER,
      // Closed again: a client that looks for its server keeps the whole run from ending.
      async version() {
        const meter = new RedisMeter(first.url)
        return meter.version().finally(() => meter.close())
      },
      stop: () => Promise.all(servers.map((server) => server.stop())),
      pause: () => first.pause(),
      resume: () => first.resume(),
    }
  },
  async mysql() {
    const server = await mariadb()
    return launched(server, async () => {
      const { createConnection } = await import('mysql2/promise')
      const connection = await createConnection(server.url)
      const [[row]] = await connection.query('SELECT VERSION() AS version')
      await connection.end()
      return row.version
    })
  },
  async postgres() {
    const server = await postgres()
    return launched(server, async () => {
      const { default: pg } = await import('pg')
      const client = new pg.Client(server.url)
      await client.connect()
      const { rows } = await client.query('SHOW server_version')
      await client.end()
      return rows[0].server_version
    })
  },
  async memcached() {
    const server = await memcached()
    return launched(server, async () => {
      const answer = await ask(server, 'version\r\n', (text) => (text.includes('\r\n') ? text : undefined))
      return answer.replace('VERSION', '').trim()
    })
  },
  async zookeeper() {
    const server = await zookeeper()
    return launched(server, async () => {
      const answer = await fourLetters(server, 'srvr')
      return /version: ([\d.]+)/.exec(answer)?.[1] ?? 'unknown'
    })
  },
  holdfast: startLockServer,
  curator: compileCurator,
}

/** Our own, as a program of its own, with the locks in its memory. */
async function startLockServer() {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-serve-'))
  const config = join(dir, 'config.json')
  // The limit is there to keep one client from taking all; here one client is all there is.
  writeFileSync(config, JSON.stringify({ limits: { requestsPerSecond: 1_000_000 } }), { mode: 0o600 })
  const more = isBuilt('cli/serve/config.js') ? ['--config', config] : []
  const args = [
    pathOf('cli/main.js'),
    'serve',
    '--listen',
    '127.0.0.1:0',
    '--state',
    'none',
    '--json',
    ...more,
  ]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const gone = once(child, 'exit')
  let text = ''
  for await (const line of createInterface({ input: child.stdout })) {
    text += line
    if (line.trimEnd().endsWith('}')) break
  }
  const { url, startsIn } = JSON.parse(text)
  // After the stop of a former run it would wait for that one's leases; with nothing remembered it waits all the same.
  await new Promise((resolve) => setTimeout(resolve, startsIn ?? 0))
  return {
    url,
    meter: new ProcessMeter(() => child.pid),
    version: async () => 'of this build',
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await gone
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** No server, but needed before the Java process can be started: its classes. The command line stands for the address. */
async function compileCurator() {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-curator-'))
  const stop = () => rmSync(dir, { recursive: true, force: true })
  try {
    const source = fileURLToPath(new URL('../contestants/CuratorBench.java', import.meta.url))
    const command = await curator({ sources: [source], dir })
    return { url: JSON.stringify(command('CuratorBench')), meter: NO_METER, version: curatorVersion, stop }
  } catch (error) {
    stop()
    throw error
  }
}

/** Debian's file is a link to one with the version in its name. */
const curatorVersion = async () =>
  /([\d.]+)\.jar$/.exec(realpathSync('/usr/share/java/curator-recipes.jar'))?.[1] ?? 'unknown'
