import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { chosen, find } from './find.mjs'
import { launch } from './process.mjs'

const run = promisify(execFile)

/** @type {import('./find.mjs').Program} */
export const program = {
  name: 'mariadb',
  command: 'mariadbd',
  apt: ['mariadb-server'],
  brew: 'mariadb',
}

const installer = { ...program, command: 'mariadb-install-db', paths: ['/usr/bin', '/usr/local/bin'] }

/** Only where it is the program that was chosen to run the tests on: MySQL and MariaDB cannot be installed side by side. */
const mysqld = { ...program, command: 'mysqld' }
const isMysql = () => chosen(mysqld.command) !== undefined

/** What {@link mariadb} starts. */
export const mysqlFlavour = isMysql() ? 'MySQL' : 'MariaDB'

/** One MariaDB with an empty database `test` and a root without password. Commits survive SIGKILL, not a power cut. */
export async function mariadb({ args = [], ...wish } = {}) {
  const server = await launch(
    {
      program: isMysql() ? mysqld : program,
      args: (at) => [...baseArgs(at), ...args],
      ready,
      prepare,
      scheme: 'mysql',
    },
    wish,
  )
  return Object.defineProperty(server, 'url', { value: `mysql://root@${server.host}:${server.port}/test` })
}

const user = userInfo().username

/** A server that starts deletes every temporary table in the folder for them, also those of a server beside it. */
function ownTmpdir(dir) {
  const folder = join(dir, 'tmp')
  mkdirSync(folder, { recursive: true })
  return [`--tmpdir=${folder}`]
}

const baseArgs = ({ port, dir }) => [
  '--no-defaults',
  `--datadir=${join(dir, 'data')}`,
  // It refuses to run as root unless told whom to run as.
  `--user=${user}`,
  '--bind-address=127.0.0.1',
  `--port=${port}`,
  `--socket=${join(dir, 's')}`,
  ...ownTmpdir(dir),
  '--skip-name-resolve',
  '--skip-log-bin',
  '--max-connections=400',
  '--innodb-flush-log-at-trx-commit=2',
  '--innodb-buffer-pool-size=32M',
  // MySQL has another word for the first, and a port of its own for the second.
  '--loose-innodb-log-file-size=16M',
  '--loose-mysqlx=OFF',
]

async function prepare({ dir }) {
  if (isMysql()) return prepareMysql(dir)
  await find(program)
  const { command } = await find(installer)
  await run(command, [
    '--no-defaults',
    `--datadir=${join(dir, 'data')}`,
    ...ownTmpdir(dir),
    `--user=${user}`,
    '--auth-root-authentication-method=normal',
    '--skip-name-resolve',
  ])
}

/** What the other's installation does by itself. Without names, a root from `localhost` is not one from the loopback. */
const FIRST = `CREATE DATABASE test;
CREATE USER root@'127.0.0.1';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
`

async function prepareMysql(dir) {
  const { command } = await find(mysqld)
  const file = join(dir, 'first.sql')
  writeFileSync(file, FIRST)
  const options = ['--initialize-insecure', `--init-file=${file}`, `--datadir=${join(dir, 'data')}`]
  await run(command, ['--no-defaults', ...options, ...ownTmpdir(dir), `--user=${user}`])
}

/** A server that takes connections speaks first: a greeting (10) or an error (255). */
function ready({ port }) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const done = (answer) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(1000, () => done(false))
    socket.once('error', () => done(false))
    socket.once('close', () => done(false))
    socket.once('data', (greeting) => done(greeting[4] === 10))
  })
}
