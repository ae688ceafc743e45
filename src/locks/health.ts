import { HoldfastError } from '../core/errors.ts'
import type { Holdfast } from './holdfast.ts'

export type Health = { readonly status: 'up' } | { readonly status: 'down'; readonly code: string }

const ASKED_FOR = 'holdfast health'

/** Whether the store answers, and the locks are not being closed. Says the code of an error and not its message, which may name hosts. */
export async function healthOf(holdfast: Holdfast): Promise<Health> {
  try {
    await holdfast.inspect(ASKED_FOR)
    return { status: 'up' }
  } catch (error) {
    return { status: 'down', code: error instanceof HoldfastError ? error.code : 'UNKNOWN' }
  }
}
