import { InvalidArgumentError } from '../core/errors.ts'

/** Not instanceof: there may be two copies of the package in a process. */
export function checkHoldfast(holdfast: unknown): void {
  const given = holdfast as { readonly mutex?: unknown } | null | undefined
  if (typeof given?.mutex === 'function') return
  const message = 'holdfast must be a Holdfast: new Holdfast(store), or await open(url)'
  throw new InvalidArgumentError(message, { argument: 'holdfast' })
}
