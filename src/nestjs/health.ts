import { healthOf } from '../locks/health.ts'
import type { Health } from '../locks/health.ts'
import type { Holdfast } from '../locks/holdfast.ts'

/** As @nestjs/terminus understands it. */
export type HoldfastHealthResult = Record<string, Health>

/** Whether the store answers, and the locks are not being closed. */
export class HoldfastHealth {
  private readonly holdfast: Holdfast

  /** Nest makes one for the Holdfast without a name; make others yourself. */
  constructor(holdfast: Holdfast) {
    this.holdfast = holdfast
  }

  /** Never rejects. */
  async check(key: string = 'holdfast'): Promise<HoldfastHealthResult> {
    return { [key]: await healthOf(this.holdfast) }
  }
}
