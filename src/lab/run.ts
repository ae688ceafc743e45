import type { RunRecord, Verdict } from './record.ts'

/** One run to be made. */
export interface Task {
  readonly id: string
  readonly title: string
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

/** One after the other: they measure time, and more than one at once would measure each other. */
export async function runAll(
  tasks: readonly Task[],
  { onProgress = () => undefined, signal }: RunOptions = {},
): Promise<RunRecord[]> {
  const all: RunRecord[] = []
  for (const [done, task] of tasks.entries()) {
    if (signal?.aborted === true) {
      all.push(...tasks.slice(done).map((each) => notRun(each, 'the lab was interrupted before')))
      break
    }
    const { title } = task
    onProgress({ done, total: tasks.length, title, records: [] })
    const say = (detail: string): void =>
      onProgress({ done, total: tasks.length, title: `${title}, ${detail}`, records: [] })
    const records = await attempt(task, say)
    all.push(...records)
    onProgress({ done: done + 1, total: tasks.length, title, records })
  }
  return all
}

/** A run that fails itself proves nothing, and must not be taken for one that held. */
async function attempt(task: Task, say: (detail: string) => void): Promise<readonly RunRecord[]> {
  try {
    const made = await task.run(say)
    return Array.isArray(made) ? (made as readonly RunRecord[]) : [made as RunRecord]
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
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
