import type { Claim } from './claim.ts'
import { now, setTimeout } from './client/time.ts'

const AGAIN_MS = 1000

/**
 * Takes the nodes of a claim away whose store is closed, while the session, which is the user's, may live on for long. Resolves after
 * the first attempt. If that fails, it is repeated when the connection is back, or, if a server refused it, a little later, for as
 * long as the session lasts.
 */
export function leaveForGood(claim: Claim): Promise<void> {
  // The claim is off its session's books by now, and nothing else keeps the process alive.
  return claim.zkSession
    .asking(() => claim.leave())
    .then(
      () => undefined,
      () => leaveLater(claim),
    )
}

/** The same when its time is over. */
export function leaveWhenOver(claim: Claim): void {
  const over = (): void => {
    leaveForGood(claim).catch(() => undefined)
  }
  setTimeout(over, Math.max(0, claim.until - now())).unref()
}

function leaveLater(claim: Claim): void {
  const { zkSession } = claim
  const again = (): void => {
    leaveForGood(claim).catch(() => undefined)
  }
  if (zkSession.connected) setTimeout(again, AGAIN_MS).unref()
  else if (!zkSession.over) {
    const stop = zkSession.zk.onState(() => {
      if (!zkSession.connected && !zkSession.over) return
      stop()
      if (zkSession.connected) again()
    })
  }
}
