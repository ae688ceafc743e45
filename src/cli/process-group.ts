import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

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

/**
 * The same for all groups of the session that a group's leader began: `timeout`, GNU `parallel` and shells with job control put
 * what they run into groups of their own. Elsewhere than on Linux nobody says which those are.
 */
export function signalSession(session: number, signal: NodeJS.Signals): 'told' | 'gone' | 'not-ours' {
  // The look for others takes its time, on a machine with thousands of processes: this one is told before it.
  const answers = [signalGroup(session, signal)]
  for (const group of new Set(groupsRunning(session)))
    if (group !== session) answers.push(signalGroup(group, signal))
  return (['told', 'not-ours'] as const).find((answer) => answers.includes(answer)) ?? 'gone'
}

/** Whether anything of that session still runs. The dead that nobody has buried (a container without an init) do not count. */
export function sessionRuns(session: number, proc: string = '/proc'): boolean {
  const groups = groupsRunning(session, proc)
  if (groups === null) return signalGroup(session, 0) !== 'gone'
  return groups.length > 0 || (hidesOthers(proc) && signalGroup(session, 0) === 'not-ours')
}

/** The group of each process of the session that runs; null where nobody can tell. */
function groupsRunning(session: number, proc: string = '/proc'): readonly number[] | null {
  if (process.platform !== 'linux' || !knowsUs(proc)) return null
  try {
    return readdirSync(proc).flatMap((pid) => (/^\d+$/.test(pid) ? groupIn(proc, pid, session) : []))
  } catch {
    return null
  }
}

/** An empty one (a bare chroot) says that nothing runs, and one of another pid namespace (`unshare --pid`) has other numbers. */
function knowsUs(proc: string): boolean {
  try {
    return readlinkSync(`${proc}/self`) === String(process.pid)
  } catch {
    return false
  }
}

/** Mounted with `hidepid`, it does not show processes of other users (`sudo`). */
function hidesOthers(proc: string): boolean {
  try {
    readFileSync(`${proc}/1/stat`)
    return false
  } catch {
    return true
  }
}

function groupIn(proc: string, pid: string, session: number): readonly number[] {
  try {
    const stat = readFileSync(`${proc}/${pid}/stat`, 'utf8')
    // The program's name may hold spaces and brackets: what follows its last bracket is regular.
    const [state = '', , group, its] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(its) === session && !'ZX'.includes(state) ? [Number(group)] : []
  } catch {
    return []
  }
}
