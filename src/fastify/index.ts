/** Locks in an application of Fastify. */

import type { Http2Stream } from 'node:http2'

import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'

import { checkOptions, checkText } from '../core/arguments.ts'
import { HoldfastError, InvalidArgumentError } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { healthOf } from '../locks/health.ts'
import type { Holdfast } from '../locks/holdfast.ts'
import type { Lock } from '../locks/lock.ts'
import type { AcquireOptions } from '../locks/options.ts'
import type { Returned } from '../locks/run.ts'
import type { Lease } from '../runtime/lease.ts'
import { checkSource, closeSource, holdfastOf, SOURCE } from '../source.ts'
import type { HoldfastSource } from '../source.ts'

export interface HoldfastFastifyOptions extends HoldfastSource {
  /** The path of a route that says whether the store answers: 200, or 503. Default: none. */
  readonly health?: string | undefined
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly holdfast: Holdfast
  }
  interface FastifyRequest {
    /**
     * Runs the body under a lock: a mutex by its name, or any lock. Who goes away stands in no line. What the store or the wait
     * for the lock fails with is answered with 503.
     */
    locked<T>(
      lock: string | Lock,
      body: (lease: Lease) => Returned<T>,
      options?: Omit<AcquireOptions, 'signal'>,
    ): Promise<Awaited<T>>
  }
}

/** `register` hands these to the plugin too. */
const OF_REGISTER = ['prefix', 'logLevel', 'logSerializers']
const KNOWN: readonly string[] = [...SOURCE, 'health', ...OF_REGISTER]
/** Come back later. */
const UNAVAILABLE: readonly ErrorCode[] = [
  'LOCK_TIMEOUT',
  'STORE_UNAVAILABLE',
  'QUORUM_UNAVAILABLE',
  'CLOSED',
]

const replies = new WeakMap<FastifyRequest, FastifyReply>()
const signals = new WeakMap<FastifyRequest, AbortSignal>()

const plugin: FastifyPluginAsync<HoldfastFastifyOptions> = async (app, options) => {
  checkOptions(options, KNOWN, 'url')
  checkSource(options)
  checkText('health', options.health)
  // Before anything is opened that nobody would close.
  if (app.hasDecorator('holdfast'))
    throw new InvalidArgumentError('the plugin is registered already: once, for the whole application', {
      argument: 'plugin',
    })
  const holdfast = await holdfastOf(options)
  app.decorate('holdfast', holdfast)
  app.decorateRequest('locked', locked)
  app.addHook('onRequest', (request, reply, done) => {
    replies.set(request, reply)
    done()
  })
  // Before the server waits for its requests: those that hold a lock are told, and those that wait for one turned away.
  app.addHook('preClose', async () => {
    for (const line of await closeSource(holdfast, options)) app.log.warn(line)
  })
  if (options.health !== undefined) addHealth(app, options.health, holdfast)
}

function locked<T>(
  this: FastifyRequest,
  lock: string | Lock,
  body: (lease: Lease) => Returned<T>,
  options: Omit<AcquireOptions, 'signal'> = {},
): Promise<Awaited<T>> {
  if ('signal' in options)
    throw new InvalidArgumentError('the signal is that of the request: leave it out, or use app.holdfast', {
      argument: 'signal',
    })
  const taken = typeof lock === 'string' ? this.server.holdfast.mutex(lock) : lock
  return taken.run(body, { ...options, signal: goneSignal(this) }).catch((error: unknown) => {
    if (error instanceof HoldfastError && UNAVAILABLE.includes(error.code) && !('statusCode' in error))
      Object.assign(error, { statusCode: 503 })
    throw error
  })
}

/** Not `request.signal`: that aborts as soon as the body of a request was read, with the client still there. */
function goneSignal(request: FastifyRequest): AbortSignal | undefined {
  const known = signals.get(request)
  const raw = replies.get(request)?.raw
  if (known !== undefined || raw === undefined) return known
  const gone = new AbortController()
  // One listener, however often the request locks. An answer over HTTP/2 says of its stream alone that it is gone.
  if (raw.destroyed || ('stream' in raw && (raw.stream as Http2Stream).destroyed)) gone.abort()
  else raw.once('close', () => gone.abort())
  signals.set(request, gone.signal)
  return gone.signal
}

function addHealth(app: FastifyInstance, path: string, holdfast: Holdfast): void {
  app.get(path, { logLevel: 'warn' }, async (_request, reply) => {
    const health = await healthOf(holdfast)
    return reply.code(health.status === 'up' ? 200 : 503).send(health)
  })
}

/** What fastify-plugin would say: it decorates the application that registers it, and knows its version. */
const facts: Record<symbol, unknown> = {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'holdfast',
  [Symbol.for('plugin-meta')]: { name: 'holdfast', fastify: '5.x' },
}

/** `await app.register(holdfastPlugin, { url: 'redis://localhost' })` */
export const holdfastPlugin: FastifyPluginAsync<HoldfastFastifyOptions> = Object.assign(plugin, facts)
export type { HoldfastSource } from '../source.ts'
