/**
 * For so many milliseconds an answer by way of the leader counts as if it had just been asked for. The store's leases end that much
 * earlier (`earlyExpiry`), so none is believed in for longer than the session that it rests on.
 */
export const PROOF_MS = 20

/** Milliseconds, of both clocks. */
export interface ProofClocks {
  mono(): number
  wall(): number
}

/** That a session stands: what the clocks said when a request left that the leader answered. */
export interface Proof {
  readonly mono: number
  readonly wall: number
}

export const NO_PROOF: Proof = { mono: -Infinity, wall: -Infinity }

export function proofFrom(clocks: ProofClocks): Proof {
  return { mono: clocks.mono(), wall: clocks.wall() }
}

/** By both clocks: the monotonic one stands still while the machine sleeps, and the session goes on ageing. */
export function isFresh({ mono, wall }: Proof, clocks: ProofClocks): boolean {
  return clocks.mono() - mono <= PROOF_MS && Math.abs(clocks.wall() - wall) <= PROOF_MS
}
