import { isError } from '../core/error-printing.ts'
import { HoldfastError } from '../core/errors.ts'
import type { Holdfast } from './holdfast.ts'

export type Health = { readonly status: 'up' } | { readonly status: 'down'; readonly code: string }

const ASKED_FOR = 'holdfast health'
/** A lock server's: it knows the program, whose token is for other names, or for locks alone. */
const NOT_THAT_NAME = 'FORBIDDEN'

/** Whether the store answers, and the locks are not being closed. Says the code of an error and not its message, which may name hosts. */
export async function healthOf(holdfast: Holdfast): Promise<Health> {
  try {
    await holdfast.inspect(ASKED_FOR)
    return { status: 'up' }
  } catch (error) {
    if (!(error instanceof HoldfastError)) return { status: 'down', code: 'UNKNOWN' }
    const { code, cause } = error
    const refused = isError(cause) && 'code' in cause && cause.code === NOT_THAT_NAME
    return refused ? { status: 'up' } : { status: 'down', code }
  }
}
