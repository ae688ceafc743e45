import type { Store } from '../../../core/contract.ts'
import type { Random } from '../../../testkit/random.ts'

/** What a store does that its author got wrong. */
const WAYS = ['throws', 'rejects', 'nonsense', 'nothing', 'thenable', 'short', 'refuses', 'queues'] as const
const METHODS: ReadonlySet<string | symbol> = new Set([
  'claim',
  'renew',
  'release',
  'withdraw',
  'inspect',
  'list',
  'downgrade',
])

/** A store some of whose calls end in a way that no store's may, whether or not they did what they were asked for. */
export function brokenStore(store: Store, share: number, chance: Random): Store {
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function' || !METHODS.has(key)) return value
      return (...args: unknown[]): unknown => {
        if (chance.next() >= share) return Reflect.apply(value, target, args)
        const way = chance.pick(WAYS)
        if (way === 'throws') throw new TypeError('broken')
        return spoiled(way, Reflect.apply(value, target, args))
      }
    },
  })
}

function spoiled(way: Exclude<(typeof WAYS)[number], 'throws'>, answer: unknown): unknown {
  switch (way) {
    case 'rejects':
      return Promise.resolve(answer).then(() => Promise.reject(new TypeError('broken')))
    case 'nonsense':
      return Promise.resolve(answer).then(() => ({ kind: 'nonsense' }))
    case 'nothing':
      return undefined
    // As a wrong password: asking again is of no use.
    case 'refuses':
      return Promise.resolve(answer).then(() => ({
        kind: 'unknown',
        cause: new Error('refused'),
        retryable: false,
      }))
    // Also who was not to wait.
    case 'queues':
      return Promise.resolve(answer).then(() => ({ kind: 'queued' }))
    // Nothing is wrong with a promise of another kind.
    case 'thenable':
      return thenable(Promise.resolve(answer))
    case 'short':
      return Promise.resolve(answer).then((given) => (Array.isArray(given) ? given.slice(1) : given))
  }
}

/** As a library has it that makes promises of its own. */
function thenable(promise: Promise<unknown>): object {
  const like = {}
  Reflect.set(like, 'then', promise.then.bind(promise))
  return like
}
