import type { Holdfast } from '../locks/holdfast.ts'
import type { Lock } from '../locks/lock.ts'
import type { PermitOptions } from '../locks/options.ts'
import type { Lease } from '../runtime/lease.ts'
import { parseDuration, parseWait } from './duration.ts'
import { UsageError } from './exit.ts'

/** What kind of lock, for how long. `run` and `acquire` take these. */
export const LOCK_OPTIONS = {
  wait: { value: 'TIME', short: 'w', help: 'how long to wait: 30s (default), 0, forever' },
  ttl: { value: 'TIME', help: 'how long the lock outlives this machine; default 15s' },
  shared: { short: 's', help: 'hold it together with other --shared ones' },
  write: { short: 'x', help: 'hold it alone, where others use --shared' },
  permits: { value: 'N', help: 'take N permits of a semaphore; default 1' },
  of: { value: 'N', help: 'how many permits the semaphore has' },
} as const

export interface LockGiven {
  readonly wait?: string
  readonly ttl?: string
  readonly shared?: true
  readonly write?: true
  readonly permits?: string
  readonly of?: string
}

/** A lock as it was asked for, checked before anything is opened. */
export interface LockWish {
  readonly name: string
  readonly mode: 'mutex' | 'shared' | 'write' | 'permits'
  readonly permits: number
  readonly capacity: number
  /** Milliseconds. */
  readonly wait: number
  /** It was asked for in so many words: then it is also for a store that is not there yet. */
  readonly patient: boolean
  readonly ttl: number
}

const DEFAULT_WAIT = 30_000
const DEFAULT_TTL = 15_000
/** A lease shorter than this leaves no time to end a command in. */
const SHORTEST_TTL = 1000

export function lockWish(name: string, given: LockGiven): LockWish {
  const { wait, ttl, shared, write, permits, of } = given
  const kinds = [shared === true, write === true, permits !== undefined || of !== undefined]
  if (kinds.filter(Boolean).length > 1) {
    throw new UsageError('--shared, --write and --permits exclude each other.')
  }
  if (permits !== undefined && of === undefined) {
    throw new UsageError('--permits N needs --of M: how many permits the semaphore has in all.')
  }
  const capacity = of === undefined ? 1 : count('--of', of)
  const weight = permits === undefined ? 1 : count('--permits', permits)
  if (weight > capacity) throw new UsageError(`--permits ${weight} cannot be had --of ${capacity}.`)
  const ttlMs = ttl === undefined ? DEFAULT_TTL : parseDuration('--ttl', ttl)
  if (ttlMs < SHORTEST_TTL) throw new UsageError(`--ttl must be at least 1s; got "${ttl}"`)
  return {
    name,
    mode: of !== undefined ? 'permits' : shared === true ? 'shared' : write === true ? 'write' : 'mutex',
    permits: weight,
    capacity,
    wait: wait === undefined ? DEFAULT_WAIT : parseWait('--wait', wait),
    patient: wait !== undefined,
    ttl: ttlMs,
  }
}

function count(option: string, text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(`${option} takes a whole number from 1; got "${text}"`)
  return Number(text)
}

/** `spent`: what of the wait is over already. */
export function acquire(
  holdfast: Holdfast,
  wish: LockWish,
  { signal, spent }: { readonly signal: AbortSignal; readonly spent: number },
): Promise<Lease> {
  const { name, mode, permits, capacity, ttl } = wish
  const options = { wait: Math.max(0, Math.round(wish.wait - spent)), ttl, signal }
  switch (mode) {
    case 'permits':
      return take(holdfast.semaphore(name, capacity), { ...options, permits })
    case 'mutex':
      return take(holdfast.mutex(name), options)
    case 'shared':
      return take(holdfast.readWriteLock(name).read, options)
    case 'write':
      return take(holdfast.readWriteLock(name).write, options)
  }
}

function take(lock: Lock, options: PermitOptions): Promise<Lease> {
  return lock.acquire(options)
}
