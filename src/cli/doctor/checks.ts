import { randomBytes } from 'node:crypto'
import type { Holdfast } from '../../locks/holdfast.ts'
import type { Lock } from '../../locks/lock.ts'
import { timeOf } from '../lock-view.ts'
import { showDuration } from '../duration.ts'

/** `warn`: it works, and there is something to know. */
export interface Finding {
  readonly status: 'ok' | 'warn' | 'fail'
  readonly what: string
  readonly detail: string
}

export interface Measured {
  readonly findings: readonly Finding[]
  /** Milliseconds. */
  readonly latency: { readonly median: number; readonly slowest: number }
  readonly wakeUp?: number
  /** How far the store's clock is ahead of this machine's, give or take half a round trip. */
  readonly clockOffset?: number
}

const ROUNDS = 20
/** Short enough not to be in anybody's way if this is killed, long enough for a slow store. */
const TTL = 10_000
const SLOW_MS = 100
const OFF_MS = 1000
const IN_LINE_MS = 500

/** Whether a lock that nobody else uses can be had at once. */
export async function givesLocks(holdfast: Holdfast): Promise<boolean> {
  try {
    const lease = await mutex(holdfast, freshName()).tryAcquire()
    await lease?.release()
    return lease !== null
  } catch {
    return false
  }
}

/** Takes locks that nobody else uses, from two clients, and looks whether they behave. */
export async function examine(first: Holdfast, second: Holdfast): Promise<Measured> {
  const name = freshName()
  const { latency, clockOffset, grows } = await sequence(first, name)
  const excludes = await exclusion(first, second, name)
  const wakeUp = await handOver(first, second, name)
  const findings: Finding[] = [
    {
      status: latency.median > SLOW_MS ? 'warn' : 'ok',
      what: 'latency',
      detail: `acquire takes ${show(latency.median)}, ${show(latency.slowest)} at worst of ${ROUNDS}`,
    },
    {
      status: excludes ? 'ok' : 'fail',
      what: 'exclusion',
      detail: excludes ? 'a second client is kept out' : 'TWO CLIENTS HELD ONE LOCK: do not use this store',
    },
    {
      status: grows ? 'ok' : 'fail',
      what: 'tokens',
      detail: grows ? 'every grant has a larger token' : 'a token did not grow: fencing does not work here',
    },
    wakeUp === undefined
      ? {
          status: 'fail',
          what: 'wake-up',
          detail: 'a waiting client did not get the lock after it was released',
        }
      : {
          status: 'ok',
          what: 'wake-up',
          detail: `a waiting client has the lock ${show(wakeUp)} after its release`,
        },
  ]
  if (clockOffset !== undefined) findings.push(clockFinding(clockOffset))
  return {
    findings,
    latency,
    ...(wakeUp === undefined ? {} : { wakeUp }),
    ...(clockOffset === undefined ? {} : { clockOffset }),
  }
}

interface Sequence {
  readonly latency: Measured['latency']
  readonly clockOffset?: number
  readonly grows: boolean
}

async function sequence(holdfast: Holdfast, name: string): Promise<Sequence> {
  const lock = mutex(holdfast, name)
  // A quorum counts in whole seconds, and by no clock of its own; those of its servers are among the settings.
  const clocked = holdfast.store.kind !== 'quorum'
  const times: number[] = []
  let last = 0n
  let grows = true
  let best: { took: number; offset?: number } = { took: Infinity }
  for (let round = 0; round < ROUNDS; round++) {
    const asked = Date.now()
    const began = performance.now()
    const lease = await lock.acquire()
    const took = performance.now() - began
    times.push(took)
    grows &&= lease.token > last
    last = lease.token
    await lease.release()
    // The token is the store's time at the grant: about the middle of the round trip, best known for the quickest.
    const time = clocked ? timeOf(lease.token, holdfast.store) : undefined
    if (time !== undefined && took < best.took) best = { took, offset: time - (asked + took / 2) }
  }
  times.sort((a, b) => a - b)
  const latency = { median: times[ROUNDS >> 1] ?? 0, slowest: times.at(-1) ?? 0 }
  return { latency, grows, ...(best.offset === undefined ? {} : { clockOffset: best.offset }) }
}

async function exclusion(first: Holdfast, second: Holdfast, name: string): Promise<boolean> {
  const lease = await mutex(first, name).acquire()
  const intruder = await mutex(second, name).tryAcquire()
  await intruder?.release()
  await lease.release()
  return intruder === null
}

/** Milliseconds from the release to the waiter's lease; undefined when it got none. */
async function handOver(first: Holdfast, second: Holdfast, name: string): Promise<number | undefined> {
  const lease = await mutex(first, name).acquire()
  const waiting = mutex(second, name).acquire({ wait: TTL })
  const got = waiting.then(
    (next) => ({ next, at: performance.now() }),
    () => undefined,
  )
  // Until it stands in line, or as long as that could take where there is none to stand in; not so many looks: a store may be far.
  const until = performance.now() + IN_LINE_MS
  while (performance.now() < until && (await first.inspect(name)).waiters.length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const released = performance.now()
  await lease.release()
  const taken = await got
  await taken?.next.release()
  return taken === undefined ? undefined : Math.max(0, taken.at - released)
}

/** Some stores take shorter leases only: a quorum with a short `maxTtl`, an ensemble with short sessions. */
function mutex(holdfast: Holdfast, name: string): Lock {
  return holdfast.mutex(name, { ttl: Math.min(TTL, holdfast.store.capabilities.maxTtl) })
}

function clockFinding(offset: number): Finding {
  const off = Math.abs(offset) > OFF_MS
  const detail = `the store's clock is ${show(Math.abs(offset))} ${offset < 0 ? 'behind' : 'ahead of'} this machine's`
  return {
    status: off ? 'warn' : 'ok',
    what: 'clock',
    detail: off ? `${detail}. Locks do not depend on it; logs that you compare do.` : detail,
  }
}

function freshName(): string {
  return `holdfast-doctor:${randomBytes(6).toString('hex')}`
}

function show(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)}ms` : showDuration(ms)
}
