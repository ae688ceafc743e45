import { play } from './play.ts'
import type { Played } from './play.ts'
import { print } from './program.ts'
import type { Program, Section, Step, TaskPlan } from './program.ts'
import type { ProgramCheck } from './trace.ts'

/** So many runs are worth a shorter program. */
const BUDGET = 600
/** Of the log. */
const LINES = 60

/** The shortest program found that still breaks the same check, or still is what is asked for. */
export async function shrinkProgram(
  program: Program,
  still: ProgramCheck | ((played: Played) => boolean),
): Promise<Played> {
  const matches =
    typeof still === 'function'
      ? still
      : ({ findings }: Played): boolean => findings.some(({ check }) => check === still)
  let best = await play(program)
  let runs = 0
  for (let shorter = true; shorter && runs < BUDGET;) {
    shorter = false
    for (const candidate of simpler(best.program)) {
      if (++runs > BUDGET) break
      const played = await play(candidate)
      if (!matches(played)) continue
      best = played
      shorter = true
      break
    }
  }
  return best
}

/** What a person needs to know of a failure, and to see it again. */
export function explain({ program, findings, log }: Played, check: ProgramCheck): string {
  const messages = new Set(findings.filter((each) => each.check === check).map(({ message }) => message))
  return [
    `${check} broke: ${[...messages][0] ?? ''}`,
    print(program),
    `play(${JSON.stringify(program)})`,
    ...log.slice(0, LINES),
    ...(log.length > LINES ? [`… and ${log.length - LINES} more`] : []),
  ].join('\n')
}

/** Programs with one thing less, the largest things first. */
function* simpler(program: Program): Iterable<Program> {
  const { tasks, closes, faults, world, processes } = program
  yield* without(tasks).map((rest) => ({ ...program, tasks: rest }))
  yield* without(closes).map((rest) => ({ ...program, closes: rest }))
  if (faults.length > 4) yield { ...program, faults: faults.slice(faults.length / 2) }
  yield* without(faults).map((rest) => ({ ...program, faults: rest }))
  if (world === 'stormy') yield { ...program, world: 'calm', faults: [] }
  if (world === 'calm') yield { ...program, world: 'direct' }
  for (const odd of ['settings', 'line', 'revokes', 'loud', 'mute', 'broken', 'unheard', 'deaf'] as const)
    if (odd in program) yield leaveOut(program, odd)
  if (processes > 1) {
    const fits = [...tasks, ...closes, ...faults].every(
      (each) => !('process' in each) || each.process < processes - 1,
    )
    if (fits) yield { ...program, processes: processes - 1 }
    yield {
      ...program,
      processes: processes - 1,
      tasks: tasks.map((task) => ({ ...task, process: Math.min(task.process, processes - 2) })),
      closes: closes.map((close) => ({ ...close, process: Math.min(close.process, processes - 2) })),
    }
  }
  for (const [index, task] of tasks.entries())
    for (const shorter of simplerTask(task)) yield { ...program, tasks: tasks.with(index, shorter) }
}

function* simplerTask(task: TaskPlan): Iterable<TaskPlan> {
  for (const steps of simplerSteps(task.steps)) yield { ...task, steps }
  if (task.at > 0) yield { ...task, at: 0 }
}

function* simplerSteps(steps: readonly Step[]): Iterable<readonly Step[]> {
  yield* without(steps)
  for (const [index, step] of steps.entries())
    for (const shorter of simplerStep(step))
      yield [...steps.slice(0, index), ...shorter, ...steps.slice(index + 1)]
}

function* simplerStep(step: Step): Iterable<readonly Step[]> {
  if (step.do === 'detach') {
    yield step.steps
    for (const steps of simplerSteps(step.steps)) yield [{ ...step, steps }]
  }
  if (step.do !== 'lock') return
  if (step.times > 1) yield [{ ...step, times: 1 }]
  if (step.inside.length > 0) yield step.inside
  for (const inside of simplerSteps(step.inside)) yield [{ ...step, inside }]
  for (const key of ['atLock', 'sharedSignal', 'ttl', 'maxHold', 'permits', 'abort'] as const)
    if (key in step) yield [leaveOut(step, key)]
  if (step.locks.length > 1) for (const locks of without(step.locks)) yield [{ ...step, locks }]
  for (const [index, lock] of step.locks.entries())
    for (const key of ['ttl', 'renew', 'reentrant'] as const) {
      if (!(key in lock)) continue
      const { [key]: _, ...rest } = lock
      yield [{ ...step, locks: step.locks.with(index, rest) }]
    }
  if (step.end !== 'release') yield [{ ...step, end: 'release' }]
}

function leaveOut<T extends Section | Program>(from: T, key: keyof T): T {
  const { [key]: _, ...rest } = from
  return rest as T
}

function without<T>(list: readonly T[]): (readonly T[])[] {
  return list.map((_, index) => list.filter((__, other) => other !== index))
}
