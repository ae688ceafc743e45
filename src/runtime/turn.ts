import type { Claim } from './claim.ts'

/** How long a process keeps a claim for its own tasks, and how many tokens it takes along. */

/** A turn without rivals lets the event loop look for input after this many sections. */
export const YIELD_EVERY = 256

/** How many tokens to reserve at a time. */
const BLOCK = { least: 1, readers: 16, first: 64, most: 1024 }

/** Whether the next task here may have it, or the store's queue goes first. */
export function mayPassOn({ lane, id, validUntil, contended, sections, since }: Claim, now: number): boolean {
  const { session } = lane
  const { turn, closed, patience } = session
  if (!lane.shared && session.guards(id)) return false
  if (!lane.renew || closed || validUntil - now < Math.min(lane.ttl, patience) / 3) return false
  if (!contended) return true
  return lane.kind.fair === 'turns' && sections < turn.count && now - since < turn.ms
}

/**
 * Whether a queue behind it would be known here, so that one more reader may share it unasked: where the store tells of queues, if nothing
 * was missed since its last answer; where it does not, for a turn after that.
 */
export function isUpToDate({ lane, era, heardAt }: Claim, now: number): boolean {
  const { session } = lane
  return session.pushes ? era > 0 && era === session.era : now - heardAt < session.turn.ms
}

/** As many tokens as the turn is likely to use: the counter should not run ahead of the clock for nothing. */
export function blockFor({ lane, only, sections }: Claim, waiting: number): number {
  // Whoever comes after a reader shares its claim, also if that was only a try.
  if (!lane.renew || (only !== null && !lane.shared)) return BLOCK.least
  const wanted = Math.max(sections, lane.lastTurn, lane.sharers, Math.min(waiting, BLOCK.first))
  return Math.min(Math.max(wanted, lane.shared ? BLOCK.readers : BLOCK.least), BLOCK.most)
}
