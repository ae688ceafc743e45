import { readFileSync, readlinkSync } from 'node:fs'

/** A process that cannot be mistaken for a later one with the same number. */
export interface ProcessId {
  readonly pid: number
  /** When it began, as the system counts; empty where that cannot be known. */
  readonly began: string
}

export function identify(pid: number): ProcessId {
  return { pid, began: statOf(pid)?.began ?? '' }
}

export function lives({ pid, began }: ProcessId): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it is there and belongs to somebody else.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  if (began === '') return true
  const stat = statOf(pid)
  return stat !== undefined && stat.began === began && stat.state !== 'Z'
}

/**
 * The script behind a process: `id=$(holdfast acquire x | jq …)` runs in a copy of the shell that is gone a moment later,
 * and the lock has to live as long as the shell that made the copy. A copy runs the same program with the same arguments
 * as its parent.
 */
export function scriptOf(pid: number): number {
  for (let current = pid; ;) {
    const parent = statOf(current)?.parent
    if (parent === undefined || parent <= 1) return current
    const program = programOf(current)
    if (program === undefined || program !== programOf(parent)) return current
    current = parent
  }
}

function programOf(pid: number): string | undefined {
  try {
    return `${readlinkSync(`/proc/${pid}/exe`)} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8')}`
  } catch {
    return undefined
  }
}

function statOf(pid: number): { parent: number; began: string; state: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Fields count from the last bracket: the program's name before it may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0] ?? '', parent: Number(fields[1]), began: fields[19] ?? '' }
  } catch {
    return undefined
  }
}
