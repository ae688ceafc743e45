import { HoldfastError } from '../core/errors.ts'
import type { Holdfast } from '../locks/holdfast.ts'

/** As @nestjs/terminus understands it. */
export type HoldfastHealthResult = Record<
  string,
  { readonly status: 'up' } | { readonly status: 'down'; readonly code: string }
>

const ASKED_FOR = 'holdfast health'

/** Whether the store answers, and the locks are not being closed. */
export class HoldfastHealth {
  private readonly holdfast: Holdfast

  /** Nest makes one for the Holdfast without a name; make others yourself. */
  constructor(holdfast: Holdfast) {
    this.holdfast = holdfast
  }

  /** Never rejects. Says the code of the error and not its message, which may name hosts. */
  async check(key: string = 'holdfast'): Promise<HoldfastHealthResult> {
    try {
      await this.holdfast.inspect(ASKED_FOR)
      return { [key]: { status: 'up' } }
    } catch (error) {
      return { [key]: { status: 'down', code: error instanceof HoldfastError ? error.code : 'UNKNOWN' } }
    }
  }
}
