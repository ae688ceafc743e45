import { hostname } from 'node:os'

import { CLAIM, inShort, RELEASE, RENEW, WITHDRAW } from '../core/answers.ts'
import type { Shape } from '../core/answers.ts'
import { backOff } from '../core/back-off.ts'
import type { MaybePromise, RenewAnswer, Store, Unknown } from '../core/contract.ts'
import {
  BrokenStoreError,
  CapacityMismatchError,
  InvalidArgumentError,
  StoreUnavailableError,
} from '../core/errors.ts'
import { unheard } from '../core/unheard.ts'
import { inBackground } from '../runtime/background.ts'
import type { Env, Timer } from '../runtime/env.ts'
import { brokenStore } from '../runtime/lane-errors.ts'
import { checkKept, isFenced, JSON_CODEC } from './cache.ts'
import type { Cache, FencedCache } from './cache.ts'
import { inTime } from './in-time.ts'
import { SleepClock } from './sleep-clock.ts'

/** A run of the job, as it is remembered. Times are wall time of the instance that ran it, in milliseconds. */
export interface RunRecord<T> {
  readonly began: number
  readonly ended: number
  /** Its fencing token, in digits. */
  readonly token: string
  readonly outcome:
    | { readonly kind: 'result'; readonly value: T }
    /** It ended well, with a result that JSON cannot hold, such as a bigint. */
    | { readonly kind: 'unwritable' }
    | { readonly kind: 'failed' }
}

/** A run that has begun, from the memory's side. */
export interface Mark<T> {
  /** It counts: no other for the rest of the hold. */
  keep(record: RunRecord<T>): Promise<void>
  /** It does not. */
  drop(): Promise<void>
}

/** Where it is remembered that the job ran. */
export interface RunMemory<T> {
  last(): Promise<RunRecord<T> | null>
  /** Only under the job's lock, of which `remaining` is left. Null: there was a run less than the hold ago. */
  begin(remaining: () => number): Promise<Mark<T> | null>
}

export interface MemoryOptions {
  readonly name: string
  /** Milliseconds, from the beginning of a run. */
  readonly hold: number
  readonly env: Env
}

export interface ClaimMemoryOptions extends MemoryOptions {
  /** Throws where the store cannot do it. It may say so only now: a lock server that was not connected before. */
  readonly check?: () => void
}

const REQUEST_TIMEOUT_MS = { least: 50, most: 5000 }
/** Never waits, so that it does not matter. */
const PATIENCE_MS = 5000

/** One claim is renewed: one answer. */
const RENEWAL: Shape = {
  ...RENEW,
  fits: (answer) => RENEW.fits(answer) && (!Array.isArray(answer) || answer.length === 1),
}

/** The name of the claim that says that the job was run. */
export const markOf = (name: string): string => `${name}:ran`

/**
 * A claim of its own that is not released: the store forgets it when the hold is over, counted from the run's beginning, also if
 * this process dies meanwhile. The job's own lock could not do both: it has to be renewed while the job runs, and then
 * lasts from the last renewal. The store is asked directly: a Holdfast would believe in the claim for less than its
 * ttl and give it back then, clean up for as long as it could last, and end it when it is closed.
 */
export function claimMemory<T>(store: Store, { name, hold, env, check }: ClaimMemoryOptions): RunMemory<T> {
  const lasting = (ms: number): { ttl: number; patience: number } => {
    const { minTtl, maxTtl, earlyExpiry } = store.capabilities
    const ttl = Math.min(Math.max(Math.ceil(ms + earlyExpiry), minTtl), maxTtl)
    return { ttl, patience: PATIENCE_MS }
  }
  const owner = `${hostname()}:${process.pid}`
  const asked = asking(store, env)
  let lastHere: RunRecord<T> | null = null
  return {
    last: () => Promise.resolve(lastHere),
    async begin(remaining) {
      check?.()
      // A silent store should not cost the job's lock as well: then the job would be told that others may have run it.
      const timeout = (): number => {
        const { least, most } = REQUEST_TIMEOUT_MS
        return Math.max(least, Math.min(most, Math.floor(remaining() / 2)))
      }
      const ref = { name: markOf(name), id: `${env.randomId()}.0` }
      const kind = { weight: 1, capacity: 1, tokens: 1, whenBusy: 'try' as const, owner }
      const request = { ...ref, ...kind, ...lasting(hold) }
      const ask = <A>(shape: Shape, call: (ms: number) => MaybePromise<A>): Promise<A | Unknown> => {
        const ms = timeout()
        return asked(ms, shape, () => call(ms), false)
      }
      // A mark of a run that never was: the store is asked to forget it. If that fails too, a period goes without its run: at most once.
      const sweep = (): void =>
        insist(env, Infinity, (ms) => asked(ms, WITHDRAW, () => store.withdraw(ref, ms), true))
      const answer = await ask(CLAIM, (ms) => store.claim(request, ms))
      if (answer.kind === 'unknown') {
        sweep()
        throw answer.cause instanceof BrokenStoreError ? answer.cause : unavailable(store, answer)
      }
      if (answer.kind === 'mismatch') throw mismatch(store, ref.name, answer.capacity)
      if (answer.kind !== 'held') return null
      const left = counted(env, hold)
      return {
        async keep(record) {
          lastHere = record
          // The store has counted since it saw the claim, a little before the run began. If it does not answer now, it
          // still knows of the run, and is told in the background for how long to remember it.
          const renew = async (ms: number, background: boolean): Promise<RenewAnswer | Unknown> => {
            const rest = left()
            if (rest <= 0) return LOST
            const renewal = { ...ref, ...lasting(rest), tokens: 0 }
            const answer = await asked(ms, RENEWAL, () => store.renew([renewal], ms), background)
            return 'kind' in answer ? answer : (answer[0] ?? LOST)
          }
          const { kind } = await renew(timeout(), false)
          if (kind === 'unknown') insist(env, env.mono() + left(), (ms) => renew(ms, true))
        },
        async drop() {
          const dropped = await ask(RELEASE, (ms) => store.release(ref, undefined, ms))
          if ('kind' in dropped || dropped.released.kind === 'unknown') sweep()
        },
      }
    },
  }
}

/** What is left of so many milliseconds from now on. */
function counted(env: Env, ms: number): () => number {
  const clock = new SleepClock(env)
  const ends = clock.now() + ms
  return () => ends - clock.now()
}

/** What a store may take beyond twice its time before it is believed to have forgotten the request, as in runtime/requests.ts. */
const GRACE_MS = 1000

type Asked = <A>(
  timeout: number,
  shape: Shape,
  call: () => MaybePromise<A>,
  background: boolean,
) => Promise<A | Unknown>

/** Whatever goes wrong on the way is an answer too, also that there is none: the job's lock would be held and renewed for ever. */
const asking =
  (store: Store, env: Env): Asked =>
  async (timeout, shape, call, background) => {
    let timer: Timer | undefined
    try {
      // Like all that a store is asked; see runtime/requests.ts.
      const answer = fitting(
        store,
        shape,
        inBackground(async () => call()),
      )
      const silence = new Promise<Unknown>((resolve) => {
        const cause = new Error(`The store did not answer within ${timeout} ms, nor later`)
        timer = env.setTimer(() => resolve({ kind: 'unknown', cause }), 2 * timeout + GRACE_MS, background)
      })
      return await Promise.race([answer, silence])
    } catch (cause) {
      return { kind: 'unknown', cause }
    } finally {
      timer?.cancel()
    }
  }

/** Also of an answer that comes too late: the promises in it end the process too. */
async function fitting<A>(store: Store, shape: Shape, asked: Promise<A>): Promise<A | Unknown> {
  const answer = await asked
  if (shape.fits(answer)) return answer
  unheard(answer)
  return {
    kind: 'unknown',
    cause: brokenStore(store.kind, shape.method, `answered ${inShort(answer, shape.each)}`),
  }
}

const INSIST_FOR_MS = 60_000
const INSIST_PAUSE_MS = { first: 100, longest: 5000 }

/** Asks again until there is an answer, for a while, and without keeping the process alive. */
function insist(env: Env, until: number, ask: (timeout: number) => Promise<{ readonly kind: string }>): void {
  const ends = Math.min(until, env.mono() + INSIST_FOR_MS)
  const attempt = async (failures: number): Promise<void> => {
    const { kind } = await ask(REQUEST_TIMEOUT_MS.most)
    if (kind !== 'unknown' || env.mono() >= ends) return
    // Cannot reject: what goes wrong is an answer.
    const again = (): void => void attempt(failures + 1).catch(() => {})
    env.setTimer(again, backOff(failures, INSIST_PAUSE_MS, env.random()), true)
  }
  attempt(0).catch(() => {})
}

const LOST: RenewAnswer = { kind: 'lost' }

function unavailable({ kind: store }: Store, { cause }: Unknown): StoreUnavailableError {
  const message = `The ${store} store did not answer, so it is not known whether the job has run. It was not run.`
  return new StoreUnavailableError(message, { store, cause })
}

function mismatch({ kind: store }: Store, lock: string, actual: number): CapacityMismatchError {
  const message = `"${lock}", which is to say that the job was run, is in use with a capacity of ${actual}, not 1. It was not run: give the job or that lock another name.`
  return new CapacityMismatchError(message, { lock, store, expected: 1, actual })
}

/** A record in a cache that all instances share. Of a run that died before its end it knows nothing. */
export function cacheMemory<T>(cache: Cache | FencedCache, { name, hold, env }: MemoryOptions): RunMemory<T> {
  const key = `ran:${name}`
  const inMemory = { what: 'memory of the job', key }
  const last = async (): Promise<RunRecord<T> | null> => {
    const text: unknown = await inTime(env, inMemory, () => cache.get(key))
    if (text === null || text === undefined) return null
    if (typeof text !== 'string') throw noText(text)
    return readRecord<T>(text)
  }
  return {
    last,
    async begin() {
      if ((await last()) !== null) return null
      const left = counted(env, hold)
      return {
        async keep(record) {
          const ttl = Math.max(1, Math.ceil(left()))
          const text = writeRecord(record)
          // One that compares refuses a run only after a later one.
          if (isFenced(cache)) {
            const fenced = { ttl, token: BigInt(record.token) }
            await inTime(env, inMemory, () => cache.setFenced(key, text, fenced))
          } else {
            const { what } = inMemory
            checkKept(await inTime<unknown>(env, inMemory, () => cache.set(key, text, ttl)), what)
          }
        },
        drop: () => Promise.resolve(),
      }
    },
  }
}

/** Taken for nothing, every instance would run the job. */
function noText(found: unknown): InvalidArgumentError {
  const got =
    found instanceof Uint8Array ? 'bytes' : typeof found === 'object' ? 'an object' : `a ${typeof found}`
  const message = `memory.get must resolve with the text that was set, or with null or undefined; got ${got}. A client that parses JSON by itself must be told not to.`
  return new InvalidArgumentError(message, { argument: 'memory' })
}

/** The run counts whatever its result is: else every instance would run the job. */
function writeRecord<T>(record: RunRecord<T>): string {
  try {
    return JSON_CODEC.encode(record)
  } catch {
    return JSON_CODEC.encode({ ...record, outcome: { kind: 'unwritable' } })
  }
}

/** Null for what no run has written. It is written over by the next one, which it must not keep from running. */
function readRecord<T>(text: string): RunRecord<T> | null {
  try {
    const record = JSON_CODEC.decode(text) as Partial<RunRecord<T>> | null
    const { began, ended, token, outcome } = record ?? {}
    const whole = typeof began === 'number' && typeof ended === 'number' && typeof token === 'string'
    return whole && typeof outcome?.kind === 'string' ? (record as RunRecord<T>) : null
  } catch {
    return null
  }
}
