import type { Abilities } from 'holdfast/testkit'

/** A queue at the store for every kind of lock, as most stores have it. */
export const everything: Abilities = {
  queue: true,
  shared: true,
  permits: true,
  downgrade: true,
  wakeups: 'push',
  fencing: 'monotonic',
  reach: 'network',
}

/** One mutex, and no line of waiters at the store. */
export const mutexOnly: Abilities = {
  ...everything,
  queue: false,
  shared: false,
  permits: false,
  downgrade: false,
}
