import type { Capabilities } from '../../core/contract.ts'
import type { Stage } from './scene.ts'

const TTL_MS = 2000

/** Short enough for a run that lasts a minute, long enough for the store and for a busy machine. */
export function settingsOf(
  kind: string,
  { minTtl, earlyExpiry }: Capabilities,
): Pick<Stage, 'ttl' | 'lateExpiry'> {
  const ttl = Math.max(TTL_MS, minTtl + earlyExpiry)
  // memcached counts whole seconds, and adds some to be never too early.
  return kind === 'memcached' ? { ttl, lateExpiry: 5000 } : { ttl }
}
