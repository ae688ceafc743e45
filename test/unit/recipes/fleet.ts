import { once } from '../../../src/recipes/index.ts'
import type { JobContext, Once, OnceOptions } from '../../../src/recipes/index.ts'
import type { Process, World } from '../runtime/far-store.ts'

export const HOUR = 3_600_000

/** The job on some instances; `runs` counts them all. */
export function fleet(w: World, size: number, options: Partial<OnceOptions<number>> = {}): Fleet {
  const fleetRuns: number[] = []
  const instances = Array.from({ length: size }, () => {
    const process = w.process({ ttl: 3000 })
    const run = async (_: JobContext): Promise<number> => {
      fleetRuns.push(w.env.mono())
      await process.env.sleep(100)
      return fleetRuns.length
    }
    const period = options.atLeast === undefined ? { every: HOUR } : {}
    return {
      process,
      job: once(process.holdfast, 'report', { run, ...period, env: process.env, ...options }),
    }
  })
  const [first, second] = instances as [Instance, Instance]
  return { instances, first, second, runs: fleetRuns }
}

export interface Instance {
  readonly process: Process
  readonly job: Once<number>
}

export interface Fleet {
  readonly instances: readonly Instance[]
  readonly first: Instance
  readonly second: Instance
  readonly runs: number[]
}
