import { PolledDriver } from './polled.ts'

/** The parts of a client for Redis over HTTP that the store uses, as `new Redis(…)` of `@upstash/redis` makes it. */
export interface HttpRedisClient {
  eval(script: string, keys: string[], args: string[]): Promise<unknown>
  evalsha(sha1: string, keys: string[], args: string[]): Promise<unknown>
}

/** Any command, through the one way that there is. */
const ANY = 'return redis.call(unpack(ARGV))'
const HDEL = "return redis.call('HDEL', KEYS[1], ARGV[1])"

export function isHttpRedis(client: object): client is HttpRedisClient {
  const { eval: text, evalsha, on } = client as Record<string, unknown>
  // Who has connections tells of them. What gathers commands (pipeline, MULTI) has these methods too, and answers none of them.
  const gathers = 'multiExec' in client || 'isPipeline' in client
  return typeof text === 'function' && typeof evalsha === 'function' && typeof on !== 'function' && !gathers
}

export class HttpDriver extends PolledDriver {
  readonly connectionless = true
  private readonly client: HttpRedisClient

  constructor(client: HttpRedisClient) {
    super()
    this.client = client
  }

  /** Its owner has aborted the signal that all its requests have. From then on it answers each with the reason for that. */
  ended(): boolean {
    const { client } = this.client as { client?: { options?: { signal?: { aborted?: unknown } } } }
    return client?.options?.signal?.aborted === true
  }

  evalsha(args: string[]): Promise<unknown> {
    return this.script('evalsha', args)
  }

  eval(args: string[]): Promise<unknown> {
    return this.script('eval', args)
  }

  override hdel(key: string, field: string): Promise<unknown> {
    return this.script('eval', [HDEL, '1', key, field])
  }

  protected run([command = '', ...args]: readonly string[]): Promise<unknown> {
    if (command === 'evalsha' || command === 'eval') return this.script(command, args)
    return this.script('eval', [ANY, '0', command, ...args])
  }

  private async script(
    how: 'evalsha' | 'eval',
    [script = '', count, ...args]: readonly string[],
  ): Promise<unknown> {
    const keys = args.splice(0, Number(count))
    try {
      const reply = await this.client[how](script, keys, args)
      if (this.ended()) throw new Error('the Redis client has been closed')
      return asTexts(reply)
    } catch (error) {
      throw plain(error)
    }
  }
}

/**
 * Texts that are numbers in JSON come as numbers, unless the client was told to leave them alone (`automaticDeserialization: false`):
 * only those whose digits say the same again, so that nothing is lost. Of other texts that are JSON the scripts return none.
 */
function asTexts(reply: unknown): unknown {
  if (typeof reply === 'number') return String(reply)
  return Array.isArray(reply) ? reply.map(asTexts) : reply
}

/** What `fetch` says that has neither the address nor a header in it. */
const HARMLESS = /^(fetch failed|failed to fetch|terminated|network error)\b[^:]*$/i

/**
 * What the client says has the whole command in it, or the page that it got instead of an answer; what `fetch` says may have the address,
 * or the token that it refuses to send.
 */
function plain(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('the client for Redis over HTTP failed without an error')
  const { name, cause } = error
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
  const because = code === '' ? '' : ` (${code})`
  if (name === 'TypeError' && !HARMLESS.test(error.message))
    return new Error(`the request over HTTP could not be made or read${because}`)
  if (name === 'UpstashJSONParseError')
    return new Error('the answer over HTTP is none of Redis: it is no JSON')
  const message = error.message.replace(/^Command failed: /, '').replace(/, command was: [[{].*$/s, '')
  return new Error(
    message === 'undefined' ? 'the answer over HTTP says neither a result nor an error' : message + because,
  )
}
