import { hostname } from 'node:os'

import { CLAIM, inShort, RELEASE } from '../core/answers.ts'
import { backOff } from '../core/back-off.ts'
import type { ClaimRef, MaybePromise, RenewAnswer, Store, Unknown } from '../core/contract.ts'
import { CapacityMismatchError, InvalidArgumentError, StoreUnavailableError } from '../core/errors.ts'
import { inBackground } from '../runtime/background.ts'
import type { Env, Timer } from '../runtime/env.ts'
import { brokenStore } from '../runtime/lane-errors.ts'
import { isFenced, JSON_CODEC } from './cache.ts'
import type { Cache, FencedCache } from './cache.ts'
import { inTime } from './in-time.ts'

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

const REQUEST_TIMEOUT_MS = { least: 50, most: 5000 }
/** Never waits, so that it does not matter. */
const PATIENCE_MS = 5000

/** The name of the claim that says that the job was run. */
export const markOf = (name: string): string => `${name}:ran`

/**
 * A claim of its own that is not released: the store forgets it when the hold is over, counted from the run's beginning, also if
 * this process dies meanwhile. The job's own lock could not do both: it has to be renewed while the job runs, and then
 * lasts from the last renewal. The store is asked directly: a Holdfast would believe in the claim for less than its
 * ttl and give it back then, clean up for as long as it could last, and end it when it is closed.
 */
export function claimMemory<T>(store: Store, { name, hold, env }: MemoryOptions): RunMemory<T> {
  const { minTtl, maxTtl, earlyExpiry } = store.capabilities
  const lasting = (ms: number): { ttl: number; patience: number } => ({
    ttl: Math.min(Math.max(Math.ceil(ms + earlyExpiry), minTtl), maxTtl),
    patience: PATIENCE_MS,
  })
  const owner = `${hostname()}:${process.pid}`
  let lastHere: RunRecord<T> | null = null
  return {
    last: () => Promise.resolve(lastHere),
    async begin(remaining) {
      // A silent store should not cost the job's lock as well: then the job would be told that others may have run it.
      const timeout = (): number => {
        const { least, most } = REQUEST_TIMEOUT_MS
        return Math.max(least, Math.min(most, Math.floor(remaining() / 2)))
      }
      const ref = { name: markOf(name), id: `${env.randomId()}.0` }
      const kind = { weight: 1, capacity: 1, tokens: 1, whenBusy: 'try' as const, owner }
      const request = { ...ref, ...kind, ...lasting(hold) }
      const answer = await asked(env, timeout(), (ms) => store.claim(request, ms))
      if (!CLAIM.fits(answer)) {
        sweep(store, ref, env)
        throw brokenStore(store.kind, 'claim', `answered ${inShort(answer)}`)
      }
      if (answer.kind === 'unknown') {
        sweep(store, ref, env)
        throw unavailable(store, answer)
      }
      if (answer.kind === 'mismatch') throw mismatch(store, ref.name, answer.capacity)
      if (answer.kind !== 'held') return null
      const began = env.mono()
      return {
        async keep(record) {
          lastHere = record
          const ends = began + hold
          // The store has counted since it saw the claim, a little before the run began. If it does not answer now, it
          // still knows of the run, and is told in the background for how long to remember it.
          const renew = async (ms: number): Promise<RenewAnswer | Unknown> => {
            const left = ends - env.mono()
            if (left <= 0) return { kind: 'lost' }
            const renewal = { ...ref, ...lasting(left), tokens: 0 }
            const answers = await store.renew([renewal], ms)
            return answers[0] ?? SILENCE
          }
          const { kind } = await asked(env, timeout(), renew)
          if (kind === 'unknown') insist(env, ends, renew)
        },
        async drop() {
          const dropped = await asked(env, timeout(), (ms) => store.release(ref, undefined, ms))
          if (!RELEASE.fits(dropped) || 'kind' in dropped || dropped.released.kind === 'unknown')
            sweep(store, ref, env)
        },
      }
    },
  }
}

/** What a store may take beyond twice its time before it is believed to have forgotten the request, as in runtime/requests.ts. */
const GRACE_MS = 1000

/** Whatever goes wrong on the way is an answer too, also that there is none: the job's lock would be held and renewed for ever. */
async function asked<A>(
  env: Env,
  timeout: number,
  call: (timeout: number) => MaybePromise<A>,
  background = false,
): Promise<A | Unknown> {
  let timer: Timer | undefined
  try {
    // Like all that a store is asked; see runtime/requests.ts.
    const answer = inBackground(async () => call(timeout))
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

const SILENCE: Unknown = { kind: 'unknown', cause: new Error('The store did not answer') }
const INSIST_FOR_MS = 60_000
const INSIST_PAUSE_MS = { first: 100, longest: 5000 }

/** Asks again until there is an answer, for a while, and without keeping the process alive. */
function insist(
  env: Env,
  until: number,
  call: (timeout: number) => MaybePromise<{ readonly kind: string }>,
): void {
  const ends = Math.min(until, env.mono() + INSIST_FOR_MS)
  const attempt = async (failures: number): Promise<void> => {
    const { kind } = await asked(env, REQUEST_TIMEOUT_MS.most, call, true)
    if (kind !== 'unknown' || env.mono() >= ends) return
    // Cannot reject: what goes wrong is an answer.
    const again = (): void => void attempt(failures + 1).catch(() => {})
    env.setTimer(again, backOff(failures, INSIST_PAUSE_MS, env.random()), true)
  }
  attempt(0).catch(() => {})
}

/** A mark of a run that never was: the store is asked to forget it. If that fails too, a period goes without its run: at most once. */
const sweep = (store: Store, ref: ClaimRef, env: Env): void =>
  insist(env, Infinity, (ms) => store.withdraw(ref, ms))

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
      const began = env.mono()
      return {
        async keep(record) {
          const ttl = Math.max(1, Math.ceil(began + hold - env.mono()))
          const text = writeRecord(record)
          await inTime<unknown>(env, inMemory, () =>
            isFenced(cache)
              ? cache.setFenced(key, text, { ttl, token: BigInt(record.token) })
              : cache.set(key, text, ttl),
          )
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
