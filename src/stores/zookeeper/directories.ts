import { now } from './client/time.ts'

/** Servers look for empty containers once a minute, by default. */
const FRESH_MS = 30_000
const MOST = 4096

/**
 * Directories that were there a moment ago. For any other one its creation is sent along with the first request that needs
 * it: if it was there, that costs a refusal in the same flight, and if it was not, it saves two.
 */
export class Directories {
  private readonly seenAt = new Map<string, number>()

  has(dir: string): boolean {
    const at = this.seenAt.get(dir)
    return at !== undefined && now() - at < FRESH_MS
  }

  seen(dir: string): void {
    // The last in the map is the last seen.
    this.seenAt.delete(dir)
    this.seenAt.set(dir, now())
    if (this.seenAt.size <= MOST) return
    for (const oldest of this.seenAt.keys()) return void this.seenAt.delete(oldest)
  }

  gone(dir: string): void {
    this.seenAt.delete(dir)
  }
}
