import { readdirSync, readFileSync } from 'node:fs'

/** Sends a signal to every process of a group. `not-ours`: all that are left belong to another user (`sudo`). */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): 'told' | 'gone' | 'not-ours' {
  // To the system, -1 is every process there is, and 0 whoever asks.
  if (!(group > 1)) return 'gone'
  try {
    process.kill(-group, signal)
    return 'told'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? 'not-ours' : 'gone'
  }
}

/** Whether anything of the group still runs. The dead that nobody has buried (a container without an init) do not count. */
export function groupRuns(group: number): boolean {
  if (signalGroup(group, 0) === 'gone') return false
  if (process.platform !== 'linux') return true
  try {
    return readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && runsIn(pid, group))
  } catch {
    return true
  }
}

function runsIn(pid: string, group: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The program's name may hold spaces and brackets: what follows its last bracket is regular.
    const [state = '', , processGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(processGroup) === group && !'ZX'.includes(state)
  } catch {
    return false
  }
}
