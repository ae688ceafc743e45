import type { NameInfo } from '../../core/contract.ts'
import type { Violation } from './violation.ts'

/** What is there after everybody has gone home. */
export interface Remains {
  /** As `inspect` shows them. */
  readonly names?: readonly NameInfo[]
  /** Keys, rows, nodes, subscriptions: whatever the backend still keeps. */
  readonly backend?: readonly string[]
  /** Timers that are still set. */
  readonly timers?: number
}

/** Nothing is held, waited for, stored or ticking. */
export function checkLeftovers({ names = [], backend = [], timers = 0 }: Remains): Violation[] {
  const claims = names.flatMap(({ name, holders, waiters }) => [
    ...holders.map(({ owner, token }) => `"${name}" is still held by ${owner} (token ${token})`),
    ...waiters.map(({ owner }) => `"${name}" is still waited for by ${owner}`),
  ])
  const kept = backend.map((what) => `the backend still has ${what}`)
  const ticking = timers === 0 ? [] : [`${timers} timers are still set`]
  return [...claims, ...kept, ...ticking].map((message) => ({ rule: 'leftovers', message }))
}
