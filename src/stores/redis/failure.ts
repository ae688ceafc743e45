import type { Unknown } from '../../core/contract.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import { UnexpectedReply } from './replies.ts'

/**
 * Errors of drivers and servers, as answers. A driver's error may carry the command with all its arguments (claim ids),
 * or the client with its password: only the message and the code go on.
 */

/** The first word of a server's error that no repetition will change. */
const FINAL = new Set([
  'NOAUTH',
  'WRONGPASS',
  'NOPERM',
  'NOPROTO',
  'WRONGTYPE',
  'CROSSSLOT',
  'MOVED',
  'HFNOMARK',
  'DENIED',
])
const FINAL_TEXT =
  /^ERR (DB index is out of range|unknown command|invalid password|unknown subcommand|wrong number of arguments)|This instance has cluster support disabled|HFLAYOUT|user_script|AUTH.* called without any password/i

/** A script that hits a full memory or a read-only server, or that an operator ends, reports it with its own name; that passes. */
const PASSING =
  /\b(OOM|READONLY|MISCONF|NOREPLICAS|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|Script killed by user)\b/

/** What a failed command is answered with. */
export function failed(error: unknown): Unknown {
  const cause = plainError(error)
  const final = isFinal(cause.message)
  // What a script is refused while it runs may be a key that all names need.
  const ofName = cannotBeRead(cause.message) || (isForbiddenKey(cause) && !/user_script/.test(cause.message))
  const scope = ofName ? ({ scope: 'name' } as const) : undefined
  const [, hint] = HINTS.find(([pattern]) => pattern.test(cause.message)) ?? []
  if (hint !== undefined) cause.message += ` (${hint})`
  return { ...(final ? unknownForGood(cause) : unknown(cause)), ...scope }
}

/** What a server means by it, and what to do. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /\bREADONLY\b/,
    'the server is a replica: lead the connection to the primary. A client of your own has to reconnect when it is told so: reconnectOnError in ioredis, client.destroy() and client.connect() in node-redis, once for all such errors',
  ],
  [
    /NOPERM|user executing the script can't|ACL failure in script/,
    'docs/stores/redis.md lists the rights that a user needs',
  ],
  [/DB index is out of range/, 'the server has fewer databases than the URL asks for'],
  [
    /^Stream isn't writeable/,
    'the connection was closed by the server or on the way. A server that has as many clients as it may (maxclients) closes it at once',
  ],
  [
    /unknown command '(evalsha|script)'/i,
    'locks need scripts: to sentinels leads redis+sentinel://h1,h2/master, and a proxy has to let scripts through',
  ],
  [
    /cluster support disabled/,
    'the server is none of a Redis Cluster: use redis://, or a client for one server',
  ],
  [/^MOVED /, 'the server is one of a Redis Cluster: use redis+cluster://, or a client for a Cluster'],
]

/** The keys of one script are of several slots, and the server is one for a Cluster. Nothing was done. */
export function isCrossSlot(error: unknown): boolean {
  return messageOf(error).startsWith('CROSSSLOT')
}

/** This user may not use one of the keys of a script. Nothing was done. */
export function isForbiddenKey(error: unknown): boolean {
  return /^NOPERM .*\bkeys?\b/.test(messageOf(error))
}

/** The slot of the keys is on its way to another server of the Cluster. Nothing was done. */
export function isTryAgain(error: unknown): boolean {
  return /\bTRYAGAIN\b/.test(messageOf(error))
}

/** The same, also if a driver that has followed it to and fro says in the end where it was sent last. */
export function isOnItsWay(error: unknown): boolean {
  return /\b(TRYAGAIN|MOVED|ASK)\b/.test(messageOf(error))
}

/** A driver's own time for an answer was up (`commandTimeout` of ioredis). The command may be under way, or be sent again. */
export function isDriversTimeout(error: unknown): boolean {
  return messageOf(error) === 'Command timed out'
}

export function isNoScript(error: unknown): boolean {
  return messageOf(error).startsWith('NOSCRIPT')
}

/** The server does not let this user do that, now or later. */
export function isRefusal(error: unknown): boolean {
  return isFinal(messageOf(error))
}

/**
 * A key could not be read that is called like one of ours. If it is of a later layout, somebody may hold the name; if another
 * program put something else there, nobody does. Anything else says nothing about the key, and is thrown again.
 */
export function maybeInUse(error: unknown): boolean {
  const message = messageOf(error)
  if (message.includes('HFLAYOUT')) return true
  if (error instanceof UnexpectedReply || cannotBeRead(message)) return false
  throw error
}

/** What is kept under the key of one name is of a later layout, or not ours. */
function cannotBeRead(message: string): boolean {
  return /HFLAYOUT|WRONGTYPE|user_script.*(attempt to|bad argument)/s.test(message)
}

/** The server has become a replica, or always was one. */
export function isReadOnly(error: unknown): boolean {
  return /\bREADONLY\b/.test(messageOf(error))
}

function isFinal(message: string): boolean {
  const word = message.slice(0, message.indexOf(' '))
  if (PASSING.test(message)) return false
  return FINAL.has(word) || FINAL_TEXT.test(message)
}

export function plainError(error: unknown): Error {
  // `unknown command 'EVALSHA', with args beginning with: …` would quote keys and ids.
  const plain = new Error(messageOf(error).replace(/, with args beginning with:.*$/s, ''))
  const code: unknown =
    typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? Object.assign(plain, { code }) : plain
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error))
    return typeof error === 'string' ? error : 'the Redis client failed without an error'
  // A driver that tried several addresses reports them all, and nothing itself.
  if (error.message === '' && error instanceof AggregateError) return error.errors.map(messageOf).join('; ')
  // One that asked several nodes of a Cluster has what the last of them said.
  const { lastNodeError: last } = error as { lastNodeError?: unknown }
  const said = error.message === '' ? error.name : error.message
  return last instanceof Error ? `${said} ${messageOf(last)}` : said
}

/** Nothing was heard in all that time. `connected`: the server may only be far away. */
export class NoAnswerError extends Error {
  readonly connected: boolean

  constructor(connected: boolean, ms: number) {
    super(`no ${connected ? 'answer from' : 'connection to'} the Redis server within ${ms} ms`)
    this.connected = connected
  }
}
