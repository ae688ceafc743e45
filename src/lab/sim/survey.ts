import { judge } from '../record.ts'
import type { Outcome, Verdict } from '../record.ts'
import { simulate } from './run.ts'
import { scenarios as all } from './scenarios.ts'
import { Struck } from './struck.ts'
import type { Check, Scenario, Simulated, SurveyOptions, SurveyRow } from './types.ts'

/** With fewer seeds than this, one that does not break proves nothing. */
const ENOUGH = 20
const OUTCOMES: readonly Outcome[] = ['held', 'broke', 'unknown', 'not run']

/** Many seeds of many scenarios, one after the other, and what they showed together. */
export async function survey(options: SurveyOptions): Promise<readonly SurveyRow[]> {
  const { seeds, firstSeed = 1, fixed = [], scenarios = all, onProgress } = options
  const surveys = scenarios.map((scenario) => new Survey(scenario))
  const of = seeds + fixed.length * surveys.length
  let unexpected = 0
  for (let done = 0; done < of; done++) {
    // In turns, so that whoever stops early has seen all of them.
    const one = surveys[done % surveys.length]
    if (one === undefined) break
    const round = Math.floor(done / surveys.length)
    const seed = fixed[round] ?? firstSeed + round - fixed.length
    const run = await simulate({ scenario: one.scenario, seed })
    await one.struck.look(run)
    if (one.add(run)) unexpected++
    onProgress?.({ done: done + 1, of, scenario: one.scenario.id, unexpected })
  }
  return surveys.flatMap((one) => one.row() ?? [])
}

class Survey {
  readonly scenario: Scenario
  readonly struck: Struck
  private runs = 0
  private readonly logs = new Set<string>()
  private readonly seen = new Map<Check, Record<Outcome, number>>()
  private first: Simulated | undefined
  private broken: Simulated | undefined
  private readonly unexpected: Simulated[] = []

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.struck = new Struck(scenario)
  }

  /** Returns whether it was a surprise. */
  add(run: Simulated): boolean {
    this.runs++
    this.logs.add(run.hash)
    this.first ??= run
    const { mustBreak } = this.scenario
    for (const { check, seen } of run.verdicts) {
      const counts = this.seen.get(check as Check) ?? countsOfNone()
      counts[seen]++
      this.seen.set(check as Check, counts)
      if (seen === 'broke' && mustBreak.includes(check as Check)) this.broken ??= run
    }
    const surprise = run.verdicts.some((verdict) => judge(verdict) === 'unexpected')
    if (surprise) this.unexpected.push(run)
    return surprise
  }

  row(): SurveyRow | undefined {
    const { scenario, runs, unexpected } = this
    const example = unexpected[0] ?? this.broken ?? this.first
    if (example === undefined) return undefined
    const verdicts = [...this.seen].map(([check, counts]) => this.verdict(check, counts))
    const faults = this.struck.verdict()
    if (faults !== undefined) verdicts.push(faults)
    return {
      scenario,
      runs,
      distinct: this.logs.size,
      seen: Object.fromEntries(this.seen) as SurveyRow['seen'],
      verdicts,
      example,
      unexpected,
    }
  }

  /** What must break has to be seen broken once; what may not must never be. A search that was given up decides nothing. */
  private verdict(check: Check, counts: Record<Outcome, number>): Verdict {
    const must = this.scenario.mustBreak.includes(check) && this.runs >= ENOUGH
    const expected = must ? 'breaks' : this.scenario.expected[check]
    const seen: Outcome =
      counts.broke > 0 ? 'broke' : counts.unknown > 0 ? 'unknown' : counts.held > 0 ? 'held' : 'not run'
    const why =
      seen === 'not run'
        ? `there was nothing to look at in any of ${this.runs} seeds`
        : `${counts.broke} of ${this.runs} seeds broke it`
    return { check, expected, seen, why }
  }
}

function countsOfNone(): Record<Outcome, number> {
  return Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Record<Outcome, number>
}
