import type { Verdict } from '../record.ts'
import type { FaultKind } from './fault.ts'
import { simulate } from './run.ts'
import type { Scenario, Simulated } from './types.ts'

/** With fewer runs than this, a fault that changed nothing proves nothing. */
const ENOUGH = 20

/**
 * Whether the faults of a scenario are there at all: for each kind one run that would have gone another way without it. A fault that
 * does nothing would let everything hold.
 */
export class Struck {
  private readonly scenario: Scenario
  /** How often each kind was in vain so far; those that were seen to do something are not in it. */
  private readonly inVain: Map<FaultKind, number>

  constructor(scenario: Scenario) {
    this.scenario = scenario
    const kinds = scenario.faults.filter((kind) => !scenario.harmless.includes(kind))
    this.inVain = new Map(kinds.map((kind) => [kind, 0]))
  }

  async look({ seed, plan, log }: Simulated): Promise<void> {
    const { scenario, inVain } = this
    for (const [kind, times] of inVain) {
      if (times >= ENOUGH || plan.every((fault) => fault.kind !== kind)) continue
      const without = plan.filter((fault) => fault.kind !== kind)
      const other = await simulate({ scenario, seed, faults: without })
      if (told(log) === told(other.log)) inVain.set(kind, times + 1)
      else inVain.delete(kind)
    }
  }

  /** Absent: nothing is done to this world, or there were too few runs to say. */
  verdict(): Verdict | undefined {
    const { inVain, scenario } = this
    const check = { check: 'faults', expected: 'holds' } as const
    const never = [...inVain].filter(([, times]) => times >= ENOUGH).map(([kind]) => kind)
    if (never.length > 0)
      return {
        ...check,
        seen: 'broke',
        why: `nothing would have gone another way without ${never.join(', ')}`,
      }
    return scenario.faults.length > 0 && inVain.size === 0 ? { ...check, seen: 'held' } : undefined
  }
}

/** What happened, without what was meant to. */
function told(log: readonly string[]): string {
  return log.filter((line) => !line.includes('nemesis')).join('\n')
}
