import { checkName } from '../core/arguments.ts'
import { once } from '../recipes/once.ts'
import type { JobContext, OnceOptions } from '../recipes/once.ts'
import { overMethod } from './over-method.ts'

export interface OnceInFleetOptions extends Omit<OnceOptions<unknown>, 'run'> {
  /** The name of the Holdfast, if it has one. */
  readonly holdfast?: string | undefined
}

export type FleetJob = <F extends (job: JobContext) => unknown>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
) => void

/**
 * A job that all replicas start at the same time, with `@Cron` or `@Interval`, and one of them runs: `@OnceInFleet('report', { every: 3_600_000 })`.
 * Elsewhere nothing happens. The method is given `{ signal, token }`.
 */
export function OnceInFleet(name: string, options: OnceInFleetOptions): FleetJob {
  checkName(name)
  const { holdfast, ...rest } = options
  return (target, key, descriptor) =>
    overMethod(
      {
        decorator: 'OnceInFleet',
        holdfast,
        make(locks, body) {
          const job = once<unknown>(locks, name, { ...rest, run: (context) => body(context) })
          return async () => {
            // Schedulers tick until the very end.
            if (locks.closed) return undefined
            const outcome = await job.tick()
            return outcome.kind === 'ran' ? outcome.result : undefined
          }
        },
      },
      target,
      key,
      descriptor,
    )
}
