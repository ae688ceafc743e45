import type { Fault } from './fault.ts'
import { describe } from './faults.ts'
import { simulate } from './run.ts'
import { scenarioOf } from './scenarios.ts'
import type { Replay, Shrunk, Simulated } from './types.ts'

/** Runs once more what was written down: the same seed, the same faults. */
export function replay({ scenario, seed, faults }: Replay): Promise<Simulated> {
  return simulate({ scenario, seed, faults })
}

/** The run up to its `step`-th step: what had happened when that was done. */
export function stepped({ log }: Simulated, step: number): readonly string[] {
  return log.slice(0, step)
}

/** Finds a list of faults that breaks the same check and of which nothing can be left out. */
export async function shrink({ scenario: which, seed, faults }: Replay, check: string): Promise<Shrunk> {
  let runs = 0
  let last: Simulated | undefined
  const breaks = async (some: readonly Fault[]): Promise<boolean> => {
    runs++
    const run = await simulate({ scenario: which, seed, faults: some })
    const broke = run.verdicts.some((verdict) => verdict.check === check && verdict.seen === 'broke')
    if (broke) last = run
    return broke
  }
  if (!(await breaks(faults))) throw new Error(`seed ${seed} does not break "${check}"`)
  const shortest = await withoutTheRest(faults, breaks)
  return { scenario: which, seed, faults: shortest, check, runs, run: last as Simulated }
}

/**
 * Delta debugging: tries to do without large parts first, then without smaller ones, down to single faults. In the end
 * each of those that are left is needed.
 */
async function withoutTheRest<T>(
  list: readonly T[],
  breaks: (some: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  if (list.length > 0 && (await breaks([]))) return []
  let kept = list
  let size = Math.ceil(kept.length / 2)
  while (kept.length > 1) {
    let shorter: readonly T[] | undefined
    for (let at = 0; at < kept.length && shorter === undefined; at += size) {
      const rest = [...kept.slice(0, at), ...kept.slice(at + size)]
      if (rest.length > 0 && (await breaks(rest))) shorter = rest
    }
    if (shorter !== undefined) kept = shorter
    else if (size === 1) break
    size = Math.max(1, Math.min(shorter === undefined ? Math.floor(size / 2) : size, kept.length - 1))
  }
  return kept
}

/** What a person needs to know of a failure, and to see it again. */
export function explain({ scenario: which, seed, check, faults, run }: Shrunk): string {
  const { id } = scenarioOf(which)
  const why = run.verdicts.find((verdict) => verdict.check === check)?.why ?? ''
  return [
    `${id}, seed ${seed}: ${check} broke: ${why}`,
    faults.length === 0 ? 'without any fault' : 'with no more than these faults:',
    ...faults.map((fault) => `  ${describe(fault)}`),
    `replay({ scenario: '${id}', seed: ${seed}, faults: ${JSON.stringify(faults)} })`,
  ].join('\n')
}
