import { launch } from './process.mjs'
import { redisCommand } from './wire.mjs'

/** @type {import('./find.mjs').Program} */
export const program = {
  name: 'redis',
  command: 'redis-server',
  apt: ['redis-server'],
  brew: 'redis',
  image: 'redis:7',
}

/** One Redis server, without persistence unless `args` ask for it. */
export function redis({ args = [], ...wish } = {}) {
  return launch(
    redisPlan(({ port, dir }) => [...dataArgs({ port, dir }), ...args]),
    wish,
  )
}

const flags = (options) => Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])

/** The arguments of a Redis that holds data; later ones win, so callers append theirs. */
export const dataArgs = ({ port, dir }) =>
  flags({
    port,
    bind: '127.0.0.1',
    dir,
    save: '',
    appendonly: 'no',
    // By default a replica waits five seconds for others to share its first copy.
    'repl-diskless-sync-delay': 0,
  })

/** @returns {import('./process.mjs').Plan} */
export const redisPlan = (args, more = {}) => ({ program, args, ready, scheme: 'redis', ...more })

/** Whether it answers. One that first wants a password does; one that still reads its files does not. */
async function ready(at) {
  try {
    return (await redisCommand(at, 'PING')) === 'PONG'
  } catch (error) {
    return error.message.startsWith('NOAUTH')
  }
}
