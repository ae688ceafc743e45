interface Bucket {
  level: number
  at: number
}

const MANY_BUCKETS = 10_000

/** A token bucket per key: `perSecond` on average, twice as many at once. */
export class RateLimit {
  private readonly perSecond: number
  private readonly buckets = new Map<string, Bucket>()
  private readonly now: () => number

  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.perSecond = perSecond
    this.now = now
  }

  /** 0 when it may go ahead; otherwise the milliseconds until one may. */
  take(key: string): number {
    const now = this.now()
    const most = this.perSecond * 2
    let bucket = this.buckets.get(key)
    if (bucket === undefined) {
      if (this.buckets.size >= MANY_BUCKETS) this.forgetFull(now)
      bucket = { level: most, at: now }
      this.buckets.set(key, bucket)
    }
    bucket.level = Math.min(most, bucket.level + ((now - bucket.at) * this.perSecond) / 1000)
    bucket.at = now
    if (bucket.level < 1) return Math.ceil(((1 - bucket.level) * 1000) / this.perSecond)
    bucket.level--
    return 0
  }

  /** Whoever has not asked for a while has a full bucket, and need not be remembered. */
  private forgetFull(now: number): void {
    for (const [key, { at, level }] of this.buckets) {
      if (level + ((now - at) * this.perSecond) / 1000 >= this.perSecond * 2) this.buckets.delete(key)
    }
  }
}
