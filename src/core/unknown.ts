import type { Unknown } from './contract.ts'

/** It is not known what became of the request. Asking again may tell. */
export function unknown(cause: unknown): Unknown {
  return { kind: 'unknown', cause }
}

/** As `unknown`, and asking again cannot help. */
export function unknownForGood(cause: unknown): Unknown {
  return { kind: 'unknown', cause, retryable: false }
}

export function isUnknown(answer: unknown): answer is Unknown {
  return typeof answer === 'object' && answer !== null && 'kind' in answer && answer.kind === 'unknown'
}
