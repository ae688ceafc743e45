export interface Pauses {
  /** Milliseconds. */
  readonly first: number
  readonly longest: number
}

/**
 * The pause after so many failures in a row: it doubles with each. `chance`, from 0 to 1, takes up to half of it away, so that a fleet
 * that failed in one moment does not come back in one.
 */
export function backOff(failures: number, { first, longest }: Pauses, chance = 1): number {
  return Math.min(first * 2 ** failures, longest) * (0.5 + chance / 2)
}
