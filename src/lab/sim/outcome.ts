import type { FaultRecord, ViolationRecord, Verdict } from '../record.ts'
import type { Finding } from './examine.ts'
import type { Fault } from './fault.ts'
import type { Traces } from './traces.ts'
import type { Scenario, Simulated } from './types.ts'

/** A run and its findings, in the shape that every run of the lab leaves behind. */
export function record(
  scenario: Scenario,
  seed: number,
  { world, plan, endedAt }: Traces,
  findings: readonly Finding[],
): Simulated {
  const timeline = world.processes.flatMap(({ diary }) => diary.timeline)
  return {
    id: `sim/${scenario.id}/${seed}`,
    title: `${scenario.title}, seed ${seed}`,
    store: scenario.store,
    fault: scenario.id.slice(scenario.id.indexOf('/') + 1),
    seed,
    durationMs: endedAt,
    clients: world.processes.map(({ name }) => name),
    faults: plan.map(faultRecord),
    timeline: timeline.sort((a, b) => a.at - b.at),
    violations: findings.flatMap(violationsOf),
    verdicts: findings.map((each) => verdictOf(scenario, each)),
    hash: world.hash(),
    log: world.log,
    plan,
  }
}

function verdictOf({ expected }: Scenario, { check, seen, violations }: Finding): Verdict {
  const [first] = violations
  const why = first?.message ?? (seen === 'not run' ? 'there was nothing to look at' : undefined)
  return { check, expected: expected[check], seen, ...(why === undefined ? {} : { why }) }
}

function violationsOf({ check, violations }: Finding): ViolationRecord[] {
  return violations.map(({ message }) => ({ check, message }))
}

function faultRecord(fault: Fault): FaultRecord {
  const { kind, at, ...rest } = fault
  const { until, process, node, ...details } = rest as Partial<Record<string, number | string>>
  const target = process === undefined ? `node ${node}` : `p${process}`
  const between = process !== undefined && node !== undefined ? [`from node ${node}`] : []
  const words = Object.entries(details).map(([key, value]) => `${key} ${value}`)
  const detail = [...between, ...words].join(', ')
  return {
    at,
    kind,
    target,
    ...(typeof until === 'number' ? { until } : {}),
    ...(detail === '' ? {} : { detail }),
  }
}
