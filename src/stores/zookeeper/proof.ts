import { isWithin } from './client/moment.ts'
import type { Clocks, Moment } from './client/moment.ts'

/**
 * For so many milliseconds an answer by way of the leader counts as if it had just been asked for. The store's leases end that much
 * earlier (`earlyExpiry`), so none is believed in for longer than the session that it rests on.
 */
export const PROOF_MS = 20

/** That a session stands: what the clocks said when a request left that was answered by way of the leader. */
export function isFresh(proof: Moment, clocks: Clocks): boolean {
  return isWithin(proof, PROOF_MS, clocks)
}
