import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

import { find } from './find.mjs'
import { ids, ready, unprivileged } from './postgres.mjs'
import { launch } from './process.mjs'

/** @type {import('./find.mjs').Program} */
export const program = { name: 'pgbouncer', command: 'pgbouncer', apt: ['pgbouncer'], brew: 'pgbouncer' }

/** A PgBouncer in transaction mode, with two connections to the server, before a PostgreSQL of {@link postgres}. */
export async function pgbouncer({ upstream, ...wish }) {
  const { command } = await find(program)
  const [first, ...words] = unprivileged(command)
  const server = await launch(
    {
      program: { ...program, command: basename(first), paths: [dirname(first)] },
      args: ({ dir }) => [...words, '-q', join(dir, 'pgbouncer.ini')],
      prepare: (at) => prepare(at, upstream),
      ready,
      scheme: 'postgres',
    },
    wish,
  )
  return Object.defineProperty(server, 'url', {
    value: `postgres://postgres@${server.host}:${server.port}/postgres`,
  })
}

function prepare({ dir, port }, upstream) {
  const file = join(dir, 'pgbouncer.ini')
  writeFileSync(join(dir, 'users.txt'), '"postgres" ""\n')
  writeFileSync(
    file,
    [
      '[databases]',
      `* = host=${upstream.host} port=${upstream.port}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = trust',
      `auth_file = ${join(dir, 'users.txt')}`,
      'pool_mode = transaction',
      'default_pool_size = 2',
      'max_client_conn = 200',
    ].join('\n'),
  )
  if (process.getuid?.() !== 0) return
  chownSync(dir, ...ids())
  chmodSync(file, 0o644)
}
