import { checkOptions } from './core/arguments.ts'
import { InvalidArgumentError } from './core/errors.ts'
import { checkClose, Holdfast } from './locks/holdfast.ts'
import type { CloseOptions } from './locks/holdfast.ts'
import { OPTIONS } from './locks/options.ts'
import type { CloseResult } from './runtime/closing.ts'
import { open } from './open.ts'
import type { OpenOptions } from './open.ts'

/** Where a framework gets its Holdfast from, and what becomes of it at the end. Give one of `url` and `holdfast`. */
export interface HoldfastSource {
  /** For `open()`: `redis://localhost`. */
  readonly url?: string | undefined
  /** For the same `open()`. */
  readonly options?: OpenOptions | undefined
  /** One of your own. It is closed at shutdown too; its client stays yours to end. */
  readonly holdfast?: Holdfast | undefined
  /** How the locks are closed at shutdown; `false`: not at all. */
  readonly close?: CloseOptions | false | undefined
}

export const SOURCE: readonly (keyof HoldfastSource)[] = ['url', 'options', 'holdfast', 'close']

export function checkSource({ url, options, holdfast, close = {} }: HoldfastSource): void {
  if ((url === undefined) === (holdfast === undefined))
    throw new InvalidArgumentError("give one of url and holdfast: { url: 'redis://localhost' }", {
      argument: 'url',
    })
  if (holdfast !== undefined && !(holdfast instanceof Holdfast))
    throw new InvalidArgumentError(
      'holdfast must be a Holdfast, of this copy of the package: new Holdfast(store)',
      {
        argument: 'holdfast',
      },
    )
  if (holdfast !== undefined && options !== undefined)
    throw new InvalidArgumentError('options are for the url: give them to new Holdfast(store, options)', {
      argument: 'options',
    })
  if (close === false) return
  checkOptions(close, OPTIONS.close, 'drain')
  checkClose(close)
}

export async function holdfastOf({ url, options, holdfast }: HoldfastSource): Promise<Holdfast> {
  return holdfast ?? open(url ?? '', options)
}

/** Closes it, and says in sentences what is worth a line in the log. */
export async function closeSource(
  holdfast: Holdfast,
  { close = {} }: HoldfastSource,
): Promise<readonly string[]> {
  if (close === false) return []
  const { cutShort, leftToExpire }: CloseResult = await holdfast.close(close)
  const left = leftToExpire.map(({ name }) => name)
  return [
    ...(cutShort.length > 0 ? [`Still running, their locks are gone: ${cutShort.join(', ')}`] : []),
    ...(left.length > 0 ? [`The store did not answer; these end by themselves: ${left.join(', ')}`] : []),
  ]
}
