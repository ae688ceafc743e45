import type { StockStorage } from '../../../src/recipes/index.ts'
import type { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

/** The quantities, with their fences, at the other end of a network. */
export class Shelf implements StockStorage {
  readonly values: number[]
  reads = 0
  writes = 0
  refused = 0
  /** Milliseconds that each request takes to arrive. */
  latency = (): number => 0
  /** What the next write comes to, if not what it should. */
  nextWrite: ((segment: number) => void) | undefined
  readonly fences: bigint[]
  private readonly env: VirtualEnv

  constructor(env: VirtualEnv, values: readonly number[]) {
    this.env = env
    this.values = [...values]
    this.fences = values.map(() => 0n)
  }

  get total(): number {
    return this.values.reduce((sum, value) => sum + value, 0)
  }

  async read(segment: number): Promise<number> {
    await this.arrive()
    this.reads++
    return this.values[segment] ?? 0
  }

  async write(segment: number, value: number, fence: bigint): Promise<boolean> {
    await this.arrive()
    this.nextWrite?.(segment)
    if (fence < (this.fences[segment] ?? 0n)) {
      this.refused++
      return false
    }
    this.writes++
    this.values[segment] = value
    this.fences[segment] = fence
    return true
  }

  private async arrive(): Promise<void> {
    const ms = this.latency()
    if (ms > 0) await this.env.sleep(ms)
    else await Promise.resolve()
  }
}
