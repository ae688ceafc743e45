import { InvalidArgumentError } from '../../core/errors.ts'

/** Files and environments leave a line's end behind the token, which no header may hold. */
export function bearer(token: unknown): string | undefined {
  if (token === undefined) return undefined
  const word = typeof token === 'string' ? token.trim() : ''
  if (/^[!-~]+$/.test(word)) return word
  // Not shown: it may be a secret all the same.
  throw new InvalidArgumentError('token must be one word of letters, digits and signs (ASCII)', {
    argument: 'token',
  })
}
