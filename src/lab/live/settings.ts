import type { Capabilities } from '../../core/contract.ts'
import type { Stage } from './scene.ts'

const TTL_MS = 2000

/** How long a store may keep what a dead client held, beyond its ttl. */
const LATE_EXPIRY_MS: Readonly<Record<string, number>> = {
  // It counts whole seconds, and adds some to be never too early.
  memcached: 5000,
  // As servers are installed: a session lasts for two ticks at least, and ends with the next one.
  zookeeper: 4000,
}

/** Short enough for a run that lasts a minute, long enough for the store and for a busy machine. */
export function settingsOf(
  kind: string,
  { minTtl, earlyExpiry }: Capabilities,
): Pick<Stage, 'ttl' | 'lateExpiry'> {
  const ttl = Math.max(TTL_MS, minTtl + earlyExpiry)
  const lateExpiry = LATE_EXPIRY_MS[kind]
  return lateExpiry === undefined ? { ttl } : { ttl, lateExpiry }
}
