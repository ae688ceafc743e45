import type { RunRecord, Verdict } from './record.ts'

/** One run to be made. */
export interface Task {
  readonly id: string
  readonly title: string
  /**
   * Tasks of one lane follow each other. A few lanes go on at once: they wait most of the time. Absent: nothing else goes on
   * meanwhile.
   */
  readonly lane?: string
  /** `say`: how far it is, where that takes long. */
  run(say: (detail: string) => void): Promise<RunRecord | readonly RunRecord[]>
}

export interface Progress {
  readonly done: number
  readonly total: number
  /** What is under way, or was the last. */
  readonly title: string
  /** What the last task left behind; nothing when one has just begun. */
  readonly records: readonly RunRecord[]
}

export interface RunOptions {
  readonly onProgress?: (progress: Progress) => void
  /** No further task begins; those that have not are said not to have been run. */
  readonly signal?: AbortSignal
}

/** More than these would measure each other. */
const LANES_AT_ONCE = 3

/** Those without a lane first, one after the other; the records are in the order of the tasks. */
export async function runAll(
  tasks: readonly Task[],
  { onProgress = () => undefined, signal }: RunOptions = {},
): Promise<RunRecord[]> {
  const all = new Map<Task, readonly RunRecord[]>()
  const { length: total } = tasks
  const make = async (task: Task): Promise<void> => {
    if (signal?.aborted === true) return
    const { title } = task
    const tell = (detail: string, records: readonly RunRecord[] = []): void =>
      onProgress({ done: all.size, total, title: `${title}${detail}`, records })
    tell('')
    const records = await attempt(task, (detail) => tell(`, ${detail}`), signal)
    all.set(task, records)
    tell('', records)
  }
  for (const task of tasks) if (task.lane === undefined) await make(task)
  const lanes = [...new Set(tasks.flatMap(({ lane }) => lane ?? []))]
  const go = async (): Promise<void> => {
    for (let lane = lanes.shift(); lane !== undefined; lane = lanes.shift())
      for (const task of tasks) if (task.lane === lane) await make(task)
  }
  await Promise.all(Array.from({ length: LANES_AT_ONCE }, go))
  return tasks.flatMap((task) => all.get(task) ?? [notRun(task, 'the lab was interrupted before')])
}

/** A run that fails itself proves nothing, and must not be taken for one that held. */
async function attempt(
  task: Task,
  say: (detail: string) => void,
  signal: AbortSignal | undefined,
): Promise<readonly RunRecord[]> {
  try {
    const made = await task.run(say)
    return Array.isArray(made) ? (made as readonly RunRecord[]) : [made as RunRecord]
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    // Ctrl-C reaches every program that a run has started, unless it was started apart.
    if (signal?.aborted === true) return [notRun(task, `the lab was interrupted meanwhile: ${why}`)]
    return [failedRun(task, why)]
  }
}

function failedRun(task: Task, why: string): RunRecord {
  return unseen(task, { check: 'the run itself', expected: 'holds', seen: 'unknown', why })
}

function notRun(task: Task, why: string): RunRecord {
  return unseen(task, { check: 'the run itself', expected: 'holds', seen: 'not run', why })
}

function unseen({ id, title }: Task, verdict: Verdict): RunRecord {
  return {
    id,
    title,
    store: id.split('/')[1] ?? id,
    fault: id.split('/')[2] ?? '',
    durationMs: 0,
    clients: [],
    faults: [],
    timeline: [],
    violations: [],
    verdicts: [verdict],
  }
}
