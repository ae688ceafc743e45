import { userInfo } from 'node:os'
import { delimiter } from 'node:path'

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

/**
 * One memcached. It keeps nothing on disk: a restart always begins empty. `command` is the path of another build than the
 * machine's own; see {@link otherMemcachedBuilds}.
 */
export function memcached({ args = [], command, ...wish } = {}) {
  // A path is found where it points to, from whatever folder it is looked for.
  const build =
    command === undefined ? program : { ...program, command, paths: ['/'], apt: [], image: undefined }
  return launch(
    { program: build, args: ({ port }) => [...baseArgs(port), ...args], ready, scheme: 'memcached' },
    wish,
  )
}

/** More builds to run the tests on, from the environment: paths, separated as in PATH. */
export function otherMemcachedBuilds() {
  return (process.env.HOLDFAST_MEMCACHED_BUILDS ?? '').split(delimiter).filter((path) => path !== '')
}

// It refuses to run as root unless told whom to run as.
const baseArgs = (port) => ['-l', '127.0.0.1', '-p', String(port), '-U', '0', '-u', userInfo().username]

function ready(at) {
  return ask(at, 'version\r\n', (answer) =>
    // One that wants a password says so, which is an answer too.
    answer.includes('\r\n') ? /^(VERSION|CLIENT_ERROR unauthenticated)/.test(answer) : undefined,
  ).catch(() => false)
}
