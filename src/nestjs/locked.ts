import { AsyncLocalStorage } from 'node:async_hooks'

import { checkName } from '../core/arguments.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import type { Lock } from '../locks/lock.ts'
import type { ReentrantOptions } from '../locks/options.ts'
import type { Lease } from '../runtime/lease.ts'
import { overMethod } from './over-method.ts'

export interface LockedOptions extends ReentrantOptions {
  /** The name of the Holdfast, if it has one. */
  readonly holdfast?: string | undefined
}

/** A method that answers with a promise, and whose arguments the name can be made of. */
export type LockedMethod<A extends unknown[]> = <F extends (...args: never[]) => Promise<unknown>>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<F> & Fits<A, F>,
) => void
export type Fits<A extends unknown[], F extends (...args: never[]) => unknown> = ((
  ...args: A
) => string) extends (...args: Parameters<F>) => string
  ? unknown
  : { readonly 'the name is made of other arguments than the method has': never }

const leases = new AsyncLocalStorage<Lease>()

/** The method runs under a lock, whose name may be made of its arguments: `@Locked((id: string) => `order:${id}`, { wait: 5_000 })`. */
export function Locked<A extends unknown[] = []>(
  name: string | ((...args: A) => string),
  options: LockedOptions = {},
): LockedMethod<A> {
  if (typeof name !== 'function') checkName(name)
  const { holdfast, ...lock } = options
  return (target, key, descriptor) =>
    overMethod(
      {
        decorator: 'Locked',
        holdfast,
        make(locks, body) {
          const lockOf = (args: unknown[]): Lock =>
            locks.mutex(typeof name === 'string' ? name : name(...(args as A)), lock)
          // Nobody is to hear of a misspelt option when the first order comes.
          locks.mutex(typeof name === 'string' ? name : 'to be made', lock)
          return (...args) => lockOf(args).run((lease) => leases.run(lease, () => body(...args)))
        },
      },
      target,
      key,
      descriptor,
    )
}

/** The lease of the `@Locked` method that is running: its `token` for what is written, its `signal` for what is waited for. */
export function currentLease(): Lease {
  const lease = leases.getStore()
  if (lease !== undefined) return lease
  throw new InvalidArgumentError('currentLease() is for what runs inside of a @Locked method', {
    argument: 'currentLease',
  })
}
