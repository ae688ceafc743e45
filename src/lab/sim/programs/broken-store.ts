import type { Store } from '../../../core/contract.ts'
import type { Random } from '../../../testkit/random.ts'

/** What a store does that its author got wrong. */
const WAYS = ['throws', 'rejects', 'nonsense', 'nothing', 'thenable', 'short', 'refuses', 'queues'] as const
/** And one that answers never, long after its time, or with what nobody can read. */
const MUTE_WAYS = [...WAYS, 'never', 'late', 'unreadable'] as const
/** Beyond most leases, and beyond the end of a request that is given up. */
const LATE_MS = [500, 1000, 2500] as const
const METHODS: ReadonlySet<string | symbol> = new Set([
  'claim',
  'renew',
  'release',
  'withdraw',
  'inspect',
  'list',
  'downgrade',
])

/** Calls the function so many milliseconds later. */
export type Later = (ms: number, call: () => void) => void

/** A store some of whose calls end in a way that no store's may, whether or not they did what they were asked for. `later`: some end late, or never. */
export function brokenStore(store: Store, share: number, chance: Random, later?: Later): Store {
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function' || !METHODS.has(key)) return value
      return (...args: unknown[]): unknown => {
        if (chance.next() >= share) return Reflect.apply(value, target, args)
        const way = later === undefined ? chance.pick(WAYS) : chance.pick(MUTE_WAYS)
        if (way === 'throws') throw new TypeError('broken')
        const answer: unknown = Reflect.apply(value, target, args)
        if (way !== 'late') return spoiled(way, answer)
        const ms = chance.pick(LATE_MS)
        return new Promise((resolve) => later?.(ms, () => resolve(answer)))
      }
    },
  })
}

function spoiled(way: Exclude<(typeof MUTE_WAYS)[number], 'throws' | 'late'>, answer: unknown): unknown {
  switch (way) {
    case 'rejects':
      return Promise.resolve(answer).then(() => Promise.reject(new TypeError('broken')))
    case 'nonsense':
      return Promise.resolve(answer).then(() => ({ kind: 'nonsense' }))
    case 'nothing':
      return undefined
    case 'never':
      return new Promise(() => undefined)
    case 'unreadable':
      return Promise.resolve(answer).then(() => Object.defineProperty({}, 'kind', UNREADABLE))
    // As a wrong password: asking again is of no use.
    case 'refuses':
      return Promise.resolve(answer).then(() => ({
        kind: 'unknown',
        cause: new Error('refused'),
        retryable: false,
      }))
    // Also who was not to wait. Of what it has not heard, it says nothing.
    case 'queues':
      return Promise.resolve(answer).then((given) => (isUnknown(given) ? given : { kind: 'queued' }))
    // Nothing is wrong with a promise of another kind.
    case 'thenable':
      return thenable(Promise.resolve(answer))
    case 'short':
      return Promise.resolve(answer).then((given) => (Array.isArray(given) ? given.slice(1) : given))
  }
}

const isUnknown = (answer: unknown): boolean =>
  typeof answer === 'object' && answer !== null && Reflect.get(answer, 'kind') === 'unknown'

const UNREADABLE: PropertyDescriptor = {
  get() {
    throw new TypeError('its connection is gone')
  },
}

/** As a library has it that makes promises of its own. */
function thenable(promise: Promise<unknown>): object {
  const like = {}
  Reflect.set(like, 'then', promise.then.bind(promise))
  return like
}
