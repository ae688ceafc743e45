import type { QueueCommand } from '../../core/claim-queue.ts'
import type { Instant } from '../../core/queue-state.ts'
import { isGuarding } from './guarding-claims.ts'
import type { Loaded, Row } from './row.ts'

/**
 * Whose hold ends by a step, besides those that give theirs up themselves. Such a claim may guard a transaction, in a
 * process that was stopped, and then stands until that ends. A claim that is given up guards none, unless it is known to.
 */
export function endedBy(
  row: Row,
  { state, stored }: Loaded,
  commands: readonly QueueCommand[],
): readonly string[] {
  const ended: string[] = []
  const look = (id: string): void => {
    if (state.holders.get(id) === undefined && !givenUp(id)) ended.push(id)
  }
  const givenUp = (id: string): boolean =>
    !isGuarding(id) && commands.some((command) => command.kind === 'release' && command.claim.id === id)
  if (row.claim !== null) look(row.claim)
  for (const { id } of stored.holders) look(id)
  // It stays, but as one of several: what it guards must be over before the others come in.
  for (const command of commands) {
    if (command.kind === 'downgrade' && isGuarding(command.claim.id)) ended.push(command.claim.id)
  }
  return ended
}

interface Spared {
  /** Gives them their own end back, but for those that the step has renewed: they were told so. */
  restore(): void
}

const NONE: Spared = { restore: () => {} }
/** Milliseconds after which it is worth asking again. No ttl is as long as this: those are whole numbers. */
const SOON_MS = 50.5

/**
 * Has a step take claims that are over for held. That they end is nothing to those who only renew what they hold: they
 * must not be kept from it.
 */
export function spareExpired(
  { state }: Loaded,
  commands: readonly QueueCommand[],
  now: Instant,
  refused: boolean,
): Spared {
  if (state.nextExpiry > now.ms) return NONE
  const onlyRenewed = commands.every(
    ({ kind, ...command }) =>
      kind === 'renew' && 'request' in command && isHeld(state.holders.get(command.request.id), now),
  )
  if (!refused && !onlyRenewed) return NONE
  const over = [...state.holders.values()].filter((holder) => !isHeld(holder, now))
  const ends = over.map((holder) => holder.expiresAt)
  const soon = now.ms + SOON_MS
  for (const holder of over) holder.expiresAt = soon
  return {
    restore: () =>
      over.forEach((holder, index) => {
        if (holder.expiresAt === soon) holder.expiresAt = ends[index] ?? 0
      }),
  }
}

const isHeld = (holder: { readonly expiresAt: number } | undefined, now: Instant): boolean =>
  holder !== undefined && holder.expiresAt > now.ms
