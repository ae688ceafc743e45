import type { Cache, FencedCache } from '../../../src/recipes/index.ts'
import type { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

interface Row {
  readonly text: string
  readonly until: number
  readonly token: bigint
}

/** A cache that several processes share, on the virtual clock, with a network in between if wanted. */
export class SharedCache implements Cache {
  reads = 0
  readonly writes: { key: string; text: string; ttl: number }[] = []
  /** Milliseconds that the next writes take to arrive. */
  slowness: number[] = []
  /** Milliseconds that each read takes. */
  latency = 0
  protected readonly rows = new Map<string, Row>()
  protected readonly env: VirtualEnv

  constructor(env: VirtualEnv) {
    this.env = env
  }

  async get(key: string): Promise<string | undefined> {
    if (this.latency > 0) await this.env.sleep(this.latency)
    else await Promise.resolve()
    this.reads++
    const row = this.rows.get(key)
    return row !== undefined && this.env.mono() < row.until ? row.text : undefined
  }

  async set(key: string, text: string, ttl: number): Promise<void> {
    await this.arrive(key, text, ttl, 0n)
  }

  delete(key: string): boolean {
    return this.rows.delete(key)
  }

  protected async arrive(key: string, text: string, ttl: number, token: bigint): Promise<boolean> {
    const ms = this.slowness.shift() ?? 0
    if (ms > 0) await this.env.sleep(ms)
    if ((this.rows.get(key)?.token ?? 0n) > token) return false
    this.writes.push({ key, text, ttl })
    this.rows.set(key, { text, until: this.env.mono() + ttl, token })
    return true
  }
}

export class SharedFencedCache extends SharedCache implements FencedCache {
  refused = 0

  async setFenced(
    key: string,
    text: string,
    { ttl, token }: { ttl: number; token: bigint },
  ): Promise<boolean> {
    const accepted = await this.arrive(key, text, ttl, token)
    if (!accepted) this.refused++
    return accepted
  }
}

/** A promise and the means to settle it. */
export interface Gate<T> {
  readonly promise: Promise<T>
  readonly open: (value: T) => void
  readonly fail: (error: Error) => void
}

export function gate<T = void>(): Gate<T> {
  let open: Gate<T>['open'] = () => {}
  let fail: Gate<T>['fail'] = () => {}
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { promise, open, fail }
}
