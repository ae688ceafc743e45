import type {
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  MaybePromise,
  NameInfo,
  Store,
  StoreEvent,
  StoreListener,
  Unknown,
  Watch,
} from '../../../core/contract.ts'
import { isUnknown } from '../../../core/unknown.ts'
import type { Random } from '../../../testkit/random.ts'

/** What a store does that its author got wrong. */
const WAYS = ['throws', 'rejects', 'nonsense', 'nothing', 'thenable', 'short', 'refuses', 'queues'] as const
/** And one that answers never, long after its time, or with what nobody can read. */
const MUTE_WAYS = [...WAYS, 'never', 'late', 'fails late', 'unreadable'] as const
/** And one whose answers look as if they were right. */
const LOUD_WAYS = [...WAYS, 'tokenless', 'half', 'mum'] as const
type Way = (typeof MUTE_WAYS)[number] | (typeof LOUD_WAYS)[number]
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

export interface Wrong {
  /** How many of its calls. */
  readonly share: number
  readonly mute: boolean
  readonly loud: boolean
}

/** A store some of whose calls end in a way that no store's may, whether or not they did what they were asked for. */
export function brokenStore(store: Store, { share, mute, loud }: Wrong, chance: Random, later: Later): Store {
  const ways: readonly [Way, ...Way[]] = mute ? MUTE_WAYS : loud ? LOUD_WAYS : WAYS
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key)
      if (typeof value !== 'function' || !METHODS.has(key)) return value
      return (...args: unknown[]): unknown => {
        if (chance.next() >= share) return Reflect.apply(value, target, args)
        const way = chance.pick(ways)
        if (way === 'throws') throw new TypeError('broken')
        const answer: unknown = Reflect.apply(value, target, args)
        if (way !== 'late' && way !== 'fails late') return spoiled(way, answer)
        const ms = chance.pick(LATE_MS)
        return new Promise((resolve, reject) =>
          later(ms, () => (way === 'late' ? resolve(answer) : reject(new TypeError('broken')))),
        )
      }
    },
  })
}

function spoiled(way: Exclude<Way, 'throws' | 'late' | 'fails late'>, answer: unknown): unknown {
  switch (way) {
    // What was to come with it is missing.
    case 'tokenless':
      return Promise.resolve(answer).then((given) => (Array.isArray(given) ? given.map(tokenless) : given))
    case 'half':
      return Promise.resolve(answer).then((given) =>
        isReleased(given) ? { released: given.released } : given,
      )
    case 'mum':
      return Promise.resolve(answer).then(() => ({ kind: 'unknown', cause: undefined }))
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

const tokenless = (answer: { readonly kind?: unknown }): unknown =>
  answer.kind === 'held' ? { kind: 'renewed', contended: false } : answer

const isReleased = (answer: unknown): answer is { readonly released: unknown } =>
  typeof answer === 'object' && answer !== null && 'released' in answer

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

/** So often a hint is repeated: more than are followed. */
const STUTTERS = 70

/** A store that says things nobody can use, or something else than it has to say, or says it over and over, and does not stop when it is told to. */
export function loudStore(store: Store, chance: Random): Store {
  const heard =
    (listener: StoreListener): StoreListener =>
    (event) => {
      const way = chance.next()
      if (way < 0.2) return listener({ kind: 'nonsense' } as unknown as StoreEvent)
      const again = way >= 0.4 && way < 0.7 ? STUTTERS : 1
      for (let time = 0; time < again; time++) listener(hint(event, way))
    }
  const hint = (event: StoreEvent, way: number): StoreEvent => {
    if (way < 0.5) return { kind: 'gap' }
    return way < 0.6 && 'name' in event ? { kind: 'freed', name: event.name } : event
  }
  const stopped = (watch: Watch): Watch => {
    const stop = (): void => {
      watch.stop()
      if (chance.next() < 0.5) throw new TypeError('broken')
    }
    return { kind: 'watching', stop }
  }
  const watch: Store['watch'] = async (session, listener, timeout) => {
    if (chance.next() < 0.2) throw new TypeError('broken')
    const answer = await store.watch(session, heard(listener), timeout)
    return answer.kind === 'watching' ? stopped(answer) : answer
  }
  const guards = (): boolean => {
    const way = chance.next()
    if (way < 0.1) throw new TypeError('broken')
    return way < 0.2 ? (undefined as unknown as boolean) : way < 0.3
  }
  const spoken: Readonly<Record<string | symbol, unknown>> = { watch, guards }
  return changed(store, spoken)
}

/** A store that lets nobody listen, or not soon, and may speak before that. It takes no longer than it may. */
export function deafStore(store: Store, chance: Random, later: Later): Store {
  const no = (): Unknown => ({ kind: 'unknown', cause: new Error('no connection is left') })
  const watch: Store['watch'] = (session, listener, timeout) => {
    const way = chance.next()
    if (way < 0.2) listener({ kind: 'gap' })
    const answer = (): MaybePromise<Watch | Unknown> =>
      chance.next() < 0.5 ? no() : store.watch(session, listener, timeout)
    if (way < 0.4) return answer()
    const ms = way < 0.7 ? timeout : chance.below(timeout)
    return new Promise((resolve) => later(ms, () => resolve(answer())))
  }
  return changed(store, { watch })
}

/** How a store without a line knows of rivals: who was refused, and how often a name was given away. */
export interface Rivals {
  readonly refused: Set<string>
  readonly given: Map<string, number>
}

/** The same store where nobody is told anything, and, without a line, where nobody stands in one. */
export function untoldStore(store: Store, line: 'none' | 'untold', { refused, given }: Rivals): Store {
  const capabilities = { ...store.capabilities, queue: line !== 'none', wakeups: 'poll' }
  const watch = (): Watch => ({ kind: 'watching', stop: () => undefined })
  const answered = ({ name }: ClaimRequest, answer: ClaimAnswer): ClaimAnswer => {
    const count = given.get(name) ?? 0
    if (answer.kind === 'held') given.set(name, count + 1)
    if (answer.kind === 'held' && refused.delete(name)) return { ...answer, contended: true }
    if (answer.kind !== 'busy') return answer
    refused.add(name)
    return { ...answer, mark: String(count) }
  }
  const claim = (request: ClaimRequest, timeout: number): MaybePromise<ClaimAnswer> => {
    const answer = store.claim(request, timeout)
    return 'then' in answer ? answer.then((one) => answered(request, one)) : answered(request, answer)
  }
  const own = { capabilities, watch, ...(line === 'none' && { claim }) }
  return changed(store, own)
}

function changed(store: Store, own: Readonly<Record<string | symbol, unknown>>): Store {
  return new Proxy(store, { get: (target, key) => own[key] ?? (Reflect.get(target, key) as unknown) })
}

/** The same store, which tells a session that a claim of it was taken away. `took`: with this token. */
export function revokingStore(store: Store, took: (claim: ClaimRef, token: bigint) => void): Store {
  const listeners = new Map<string, StoreListener>()
  const watch: Store['watch'] = (session, listener, timeout) => {
    listeners.set(session, listener)
    return store.watch(session, listener, timeout)
  }
  const withdraw: Store['withdraw'] = (claim, timeout) => {
    const { name, id } = claim
    const { holders } = store.inspect(name, timeout) as NameInfo
    const token = holders.find((one) => one.id === id)?.token
    const answer = store.withdraw(claim, timeout)
    if (token === undefined) return answer
    took(claim, token)
    listeners.get(id.slice(0, id.indexOf('.')))?.({ kind: 'revoked', name, id })
    return answer
  }
  return changed(store, { watch, withdraw })
}
