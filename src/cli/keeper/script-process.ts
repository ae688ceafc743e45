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
 * The script behind a process, for as long as which the lock has to live. Not the script, and gone a moment later, are:
 * - a copy of the shell, in which `id=$(holdfast acquire x | jq …)` runs: the same program with the same arguments as its parent;
 * - a program that only runs another one: `timeout 60 holdfast acquire x`, `npx holdfast acquire x`;
 * - a shell that has nothing but this command to run, as npx and make start one.
 *
 * 0: it is outside of this container, where nobody sees it end (`docker exec`).
 */
export function scriptOf(pid: number): number {
  for (let current = pid; current > 0;) {
    const { parent, session } = statOf(current) ?? {}
    const program = programOf(current)
    if (parent === undefined || program === undefined) return current
    if (!isWrapper(program.args) && program.text !== programOf(parent)?.text) return current
    // Process 1 is the script of a container, whose session is that of what it calls; or it takes in the orphans of others.
    if (parent === 1 && statOf(1)?.session !== session) return current
    current = parent
  }
  return 0
}

const WRAPPERS = new Set(
  (
    'timeout sudo doas su runuser nice nohup env stdbuf setsid time chrt ionice taskset strace unbuffer ' +
    'npm npx pnpm pnpx yarn yarnpkg bunx corepack'
  ).split(' '),
)
const RUNTIMES = new Set(['node', 'bun', 'busybox'])
const SHELLS = new Set(['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh'])

/** Whether it does nothing but run another program, by its words. */
export function isWrapper(args: readonly string[]): boolean {
  // npm calls itself `npm exec holdfast …`, in one word.
  const words = (args[0] ?? '').startsWith('npm ') ? (args[0] ?? '').split(' ') : args
  const [first = '', second = '', third = ''] = words
  const program = baseOf(first)
  if (WRAPPERS.has(program)) return true
  if (RUNTIMES.has(program)) return WRAPPERS.has(baseOf(second))
  return SHELLS.has(program) && /^-[a-z]*c$/.test(second) && isOneCommand(third)
}

/**
 * `holdfast acquire x`, `A=1 timeout 60 npx holdfast acquire x 2>&1`, and nothing before, behind or around it. Few shells become
 * the last program that they run (dash does not).
 */
function isOneCommand(text: string): boolean {
  const command = text.replaceAll(/[<>]&[\d-]/g, '')
  return /(^|[\s"'/])holdfast(@\S+)?["']?\s/.test(command) && !/[;|&\n`]|\$\(|^\s*(\.|source)\s/.test(command)
}

/** `/usr/lib/node_modules/npm/bin/npx-cli.js` is npx. */
function baseOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).replace(/(-cli)?(\.[cm]?js)?$/, '')
}

function programOf(pid: number): { readonly text: string; readonly args: readonly string[] } | undefined {
  try {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    const args = line.split('\0')
    return { text: `${readlinkSync(`/proc/${pid}/exe`)} ${line}`, args }
  } catch {
    return undefined
  }
}

interface Stat {
  readonly state: string
  readonly parent: number
  readonly session: number
  readonly began: string
}

function statOf(pid: number): Stat | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Fields count from the last bracket: the program's name before it may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state = '', parent, , session] = fields
    return { state, parent: Number(parent), session: Number(session), began: fields[19] ?? '' }
  } catch {
    return undefined
  }
}
