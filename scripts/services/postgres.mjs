import { execFile } from 'node:child_process'
import { chmodSync, chownSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { chosen, find } from './find.mjs'
import { launch } from './process.mjs'

const run = promisify(execFile)

// Debian keeps the server's programs out of PATH.
const DEBIAN = '/usr/lib/postgresql'
const paths = existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, 'bin')) : []

/** @type {import('./find.mjs').Program} */
export const program = {
  name: 'postgres',
  command: 'initdb',
  paths,
  apt: ['postgresql'],
  brew: 'postgresql@17',
}

/** One PostgreSQL with a superuser `postgres` without password. Commits survive SIGKILL, not a power cut. */
export async function postgres({ args = [], ...wish } = {}) {
  // As `initdb`, because that is in the package of the server only, and the server always lies beside it.
  const { command: initdb } = await find({ ...program, paths: installedPaths() })
  const bin = dirname(initdb)
  const [command, ...words] = unprivileged(join(bin, 'postgres'))
  const server = await launch(
    {
      program: { ...program, command: command.split('/').at(-1), paths: [dirname(command)] },
      args: (at) => [...words, ...baseArgs(at), ...args],
      prepare: (at) => prepare(at, initdb, wish.env),
      ready,
      scheme: 'postgres',
    },
    wish,
  )
  return withManners(server)
}

function installedPaths() {
  return existsSync(DEBIAN) ? readdirSync(DEBIAN).map((version) => join(DEBIAN, version, 'bin')) : paths
}

/** It refuses to run as root, whatever it is told: root becomes the package's user, or nobody. */
export function unprivileged(...command) {
  if (process.getuid?.() !== 0 || command[0] === chosen(basename(command[0]))) return command
  const [uid, gid] = ids()
  return ['/usr/bin/setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--', ...command]
}

export function ids() {
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const [, , uid, gid] =
    users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody')
  return [Number(uid), Number(gid)]
}

const SETTINGS = { fsync: 'off', max_connections: 200, shared_buffers: '32MB' }

const baseArgs = ({ port, dir }) => [
  '-D',
  join(dir, 'data'),
  `--port=${port}`,
  '--listen_addresses=127.0.0.1',
  '--unix_socket_directories=',
  ...Object.entries(SETTINGS).map(([name, value]) => `--${name}=${value}`),
]

async function prepare({ dir }, initdb, env = {}) {
  if (process.getuid?.() === 0) {
    chownSync(dir, ...ids())
    // A clock shim lies in its maker's folder.
    if (env.HOLDFAST_CLOCK_FILE !== undefined) chmodSync(dirname(env.HOLDFAST_CLOCK_FILE), 0o755)
  }
  const [command, ...args] = unprivileged(initdb)
  const options = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync']
  await run(command, [...args, '-D', join(dir, 'data'), ...options], { cwd: dir })
}

/**
 * Each connection is a process of its own, in a session of its own, so that to freeze or kill the first one is not
 * enough; and SIGTERM would wait until every client has gone by itself.
 */
function withManners(server) {
  const { stop, restart, kill } = Object.fromEntries(
    ['stop', 'restart', 'kill'].map((name) => [name, server[name].bind(server)]),
  )
  const all = (signal) => {
    for (const pid of [server.pid, ...childrenOf(server.pid)]) send(pid, signal)
  }
  const end = async () => {
    if (server.pid === undefined) return
    all('SIGCONT')
    await kill('SIGINT')
  }
  return Object.assign(Object.defineProperty(server, 'url', { value: urlOf(server) }), {
    kill: async (signal = 'SIGKILL') => {
      const children = signal === 'SIGKILL' ? childrenOf(server.pid) : []
      await kill(signal)
      for (const pid of children) send(pid, signal)
      // They share the memory that the next start has to make anew.
      while (children.some((pid) => existsSync(`/proc/${pid}`))) await sleep(5)
    },
    pause: async () => all('SIGSTOP'),
    resume: async () => all('SIGCONT'),
    stop: async () => {
      await end()
      await stop()
    },
    restart: async (options) => {
      await end()
      await restart(options)
    },
  })
}

const urlOf = ({ host, port }) => `postgres://postgres@${host}:${port}/postgres`

function childrenOf(pid) {
  if (pid === undefined) return []
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}

function send(pid, signal) {
  try {
    if (pid !== undefined) process.kill(pid, signal)
  } catch {
    // It ended by itself.
  }
}

/** Asks to log in: 'R' says that it may go on, an error that the server is still starting. */
export function ready({ port }) {
  const words = Buffer.from('user\0postgres\0database\0postgres\0\0')
  const head = Buffer.alloc(8)
  head.writeInt32BE(words.length + 8, 0)
  head.writeInt32BE(196_608, 4)
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.concat([head, words])))
    const done = (answer) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(1000, () => done(false))
    socket.once('error', () => done(false))
    socket.once('close', () => done(false))
    socket.once('data', (answer) => done(answer.toString('latin1', 0, 1) === 'R'))
  })
}
