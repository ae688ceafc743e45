import { randomBytes } from 'node:crypto'

import type { ClaimRef, ClaimRequest, Held, RenewAnswer, Renewed, Store } from '../core/contract.ts'

/** A place for which nobody shows a sign of life for so long is given up, by the store itself. */
const AT_ONCE_MS = 1
/** Until that has come to pass, by the clock of any store. */
const OVER_MS = 10

export interface Leaving {
  readonly timeout: number
  /** Whether it is certain that nobody has told the client of a lease. Asked when the store has answered. */
  readonly untold: () => boolean
  /** Where the client is still there: takes the lease that it may have become. False when it does not want it any more. */
  readonly wanted?: (lease: Held | Renewed) => boolean
  /** Hears what became of it otherwise. */
  readonly left: (answer: RenewAnswer) => void
}

/**
 * Gives up a place in line and nothing else. It may have become a lease since the store was last asked, of which another server has told
 * the client, or tells it before a release gets there. So it is not released, but renewed for next to no patience: a
 * lease does not mind.
 */
export function leaveLine(
  store: Store,
  { name, id, ttl }: ClaimRequest,
  { timeout, untold, wanted, left }: Leaving,
): void {
  // With a token for the lease, if there is somebody to have it.
  const tokens = wanted === undefined ? 0 : 1
  const asked = store.renew([{ name, id, ttl, patience: AT_ONCE_MS, tokens }], timeout)
  const settle = (answer: RenewAnswer | undefined, atOnce: boolean): void => {
    if (answer === undefined) return
    if ((answer.kind === 'held' || answer.kind === 'renewed') && wanted?.(answer) === true) return
    if (answer.kind === 'queued') letOthersPass(store, name, timeout)
    // "Held", not "renewed": granted by this very question. In the same step, nobody else can have heard of it.
    const unwanted = answer.kind === 'held' && (atOnce || untold())
    if (unwanted) releaseOnce(store, { name, id }, timeout)
    left(unwanted ? { kind: 'queued' } : answer)
  }
  // What the store does not hear of ends with the patience or the ttl.
  if (asked instanceof Promise) asked.then(([answer]) => settle(answer, false)).catch(() => undefined)
  else settle(asked[0], true)
}

/** A store looks at a line when it is asked something about the name. A claim that nobody ever made will do. */
function letOthersPass(store: Store, name: string, timeout: number): void {
  const id = `left.${randomBytes(8).toString('hex')}`
  setTimeout(() => releaseOnce(store, { name, id }, timeout), OVER_MS).unref()
}

/** At once or not at all: later, the same claim may be wanted again. */
export function releaseOnce(store: Store, { name, id }: ClaimRef, timeout: number): void {
  const released = store.release({ name, id }, undefined, timeout)
  if (released instanceof Promise) released.catch(() => undefined)
}
