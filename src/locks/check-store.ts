import { CAPABILITIES } from '../core/capabilities.ts'
import type { Store } from '../core/contract.ts'
import { InvalidArgumentError } from '../core/errors.ts'

const METHODS = ['claim', 'renew', 'release', 'withdraw', 'watch', 'inspect', 'list', 'close'] as const
/** What the runtime goes by. */
const NEEDED = ['queue', 'shared', 'permits', 'wakeups', 'minTtl', 'maxTtl', 'earlyExpiry'] as const

/** Clients that people have in hand when they need a store, by what only they can do; and how one becomes the other. */
const CLIENTS: readonly (readonly [methods: readonly string[], make: string, from: string])[] = [
  [['defineCommand'], 'redisStore', 'redis'],
  [['sendCommand'], 'redisStore', 'redis'],
  [['getConnection', 'query'], 'mysqlStore', 'mysql'],
  [['prepare', 'exec'], 'sqliteStore', 'sqlite'],
  [['connect', 'query'], 'postgresStore', 'postgres'],
]

/** Whoever passes something else than a store hears what to pass, and not that a property of undefined cannot be read. */
export function checkStore(store: unknown): asserts store is Store {
  if (typeof store === 'string') throw refusal('not a URL: await open(url)')
  if (typeof store !== 'object' || store === null)
    throw refusal(
      "new Holdfast(memoryStore()), new Holdfast(redisStore(client)), or await open('redis://localhost')",
    )
  const has = (name: string): boolean => typeof (store as Record<string, unknown>)[name] === 'function'
  if (has('then')) throw refusal('await the one that is promised')
  if (!has('claim')) {
    const client = CLIENTS.find(([methods]) => methods.every(has))
    if (client === undefined) throw refusal('memoryStore(), redisStore(client) …, or await open(url)')
    throw refusal(`not a client: ${client[1]}(client), from holdfast/${client[2]}`)
  }
  const { kind, capabilities } = store as Partial<Store>
  const missing = METHODS.filter((name) => !has(name))
  if (missing.length > 0) throw refusal(`this one has no method ${missing.join(', ')}`)
  if (typeof kind !== 'string') throw refusal('this one has no kind')
  const unsaid = NEEDED.filter((name) => capabilities?.[name] === undefined)
  if (unsaid.length > 0) throw refusal(`its capabilities do not say ${unsaid.join(', ')}`)
  const wrong = NEEDED.find((name) => !CAPABILITIES[name](capabilities?.[name]))
  if (wrong !== undefined)
    throw refusal(
      `its capabilities say ${wrong}: ${JSON.stringify(capabilities?.[wrong])}, which means nothing`,
    )
}

function refusal(what: string): InvalidArgumentError {
  return new InvalidArgumentError(`store must be a store: ${what}.`, { argument: 'store' })
}
