import { userInfo } from 'node:os'

import { launch } from './process.mjs'
import { ask } from './wire.mjs'

/** @type {import('./find.mjs').Program} */
export const program = {
  name: 'memcached',
  command: 'memcached',
  apt: ['memcached'],
  brew: 'memcached',
  image: 'memcached:1.6',
}

/** One memcached. It keeps nothing on disk: a restart always begins empty. */
export function memcached({ args = [], ...wish } = {}) {
  return launch(
    { program, args: ({ port }) => [...baseArgs(port), ...args], ready, scheme: 'memcached' },
    wish,
  )
}

// It refuses to run as root unless told whom to run as.
const baseArgs = (port) => ['-l', '127.0.0.1', '-p', String(port), '-U', '0', '-u', userInfo().username]

function ready(at) {
  return ask(at, 'version\r\n', (answer) =>
    answer.includes('\r\n') ? answer.startsWith('VERSION') : undefined,
  ).catch(() => false)
}
