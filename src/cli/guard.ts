import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import type { Writable } from 'node:stream'
import { CommandError, EXIT } from './exit.ts'
import { signalGroup } from './process-group.ts'

/**
 * A dead man's switch. A second process holds the other end of a pipe and kills the command's session
 *  - when the pipe closes: holdfast is gone, however it went (SIGKILL, a crash, the kernel out of memory);
 *  - when the fuse burns down: holdfast still exists but does not renew, because it is stopped or starved.
 *
 * It is a shell and not a Node: that takes 1 ms and 1 MB instead of 40 ms and 40 MB for every command that is run.
 * PR_SET_PDEATHSIG (setpriv --pdeathsig) was the other candidate; it exists on Linux only, reaches the command but not
 * what the command started, and does nothing about a holdfast that is merely stopped.
 *
 * Lines on its stdin: seconds until the fuse burns down (or "none"), before the command is started; the process group; then
 * seconds again, each of which replaces the one before; at last "off".
 *
 * Between the command's start and the line with its group, holdfast may be killed or stopped too; on a busy machine that gap is wide. Then
 * the guard knows no group, and looks in /proc for what carries the mark that is in the command's environment. A shell that
 * waits for a word before it becomes the command would leave no gap, but shells drop variables whose names they do not like.
 *
 * It looks at processes by the last digit of their numbers, with one grep each: dash reads a file byte by byte, which took it five
 * seconds for six thousand of them, and the names of a hundred thousand are more than one program can be given. And it
 * looks again until there are none: what starts others in groups of their own goes on until it is reached itself.
 *
 * A /proc that knows this shell by another number is that of another pid namespace: its numbers are those of strangers.
 */
const SCRIPT = `
trap '' HUP INT QUIT
fuse=
read -r self </proc/self/stat
look() {
  file=$1; shift
  for digit in 0 1 2 3 4 5 6 7 8 9; do grep "$@" /proc/*"$digit/$file"; done
}
others() {
  look stat -hsE "\\) [^ZX] [0-9]+ [0-9]+ $group " | {
    none=yes
    while read -r line; do
      set -- \${line##*\\) }
      if [ "$4" = "$group" ]; then none=; kill -s KILL -- "-$3"; fi
    done
    [ -z "$none" ]
  }
}
strike() {
  kill -s KILL -- "-$group"
  if [ "\${self%% *}" != "$$" ]; then return; fi
  tries=0
  while [ "$tries" -lt 20 ] && others; do tries=$((tries + 1)); done
} 2>/dev/null
cut() { if [ -n "$fuse" ]; then kill "$fuse" 2>/dev/null; wait "$fuse"; fuse=; fi; }
burn() {
  trap 'kill "$!" 2>/dev/null; exit' TERM
  sleep "$1" &
  wait "$!" && strike
}
sweep() {
  if [ "\${self%% *}" != "$$" ]; then return; fi
  tries=0
  while [ "$tries" -lt 50 ]; do
    for file in $(look environ -slF "$1"); do
      pid=\${file#/proc/}
      kill -s KILL -- "-\${pid%/environ}" 2>/dev/null
    done
    sleep 0.1
    tries=$((tries + 1))
  done
}
early() {
  trap 'kill "$!" 2>/dev/null; exit' TERM
  sleep "$1" &
  wait "$!" && sweep "$2"
}
read -r first || exit 0
if [ "$first" != none ]; then early "$first" "$1" & fuse=$!; fi
read -r group || { cut; sweep "$1"; }
if [ "\${group:-off}" = off ]; then cut; exit 0; fi
while read -r line; do
  cut
  if [ "$line" = off ]; then exit 0; fi
  burn "$line" & fuse=$!
done
strike
cut
`

const AGAIN_MS = 100

export class Guard {
  private process: ChildProcess
  private pipe: Writable
  private group: number | null = null
  private burnsDownAt = Infinity
  private isOff = false
  /** Belongs into the command's environment. */
  readonly mark: readonly [name: string, value: string] = ['HOLDFAST_RUN', randomBytes(12).toString('hex')]

  /** `fuse`: milliseconds after which whatever was started meanwhile is killed, unless a later word says otherwise; null: never. */
  constructor(fuse: number | null) {
    if (fuse !== null) this.burnsDownAt = performance.now() + fuse
    const { process, pipe } = this.start()
    this.process = process
    this.pipe = pipe
  }

  /** From now on the group dies with this process. */
  protect(group: number): void {
    this.group = group
    this.pipe.write(`${group}\n`)
  }

  /** The group is killed after this many milliseconds unless a later call says otherwise. */
  fuse(ms: number): void {
    this.burnsDownAt = performance.now() + ms
    this.pipe.write(secondsOf(ms))
  }

  off(): void {
    this.isOff = true
    this.pipe.end('off\n')
  }

  private start(): { process: ChildProcess; pipe: Writable } {
    const started = spawn('/bin/sh', ['-c', SCRIPT, 'holdfast-guard', this.mark.join('=')], {
      // A session of its own: what stops or ends this process's group must not reach it.
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      // A program's name may be of any bytes. And sleep and grep are not everywhere where the standard says (NixOS).
      env: { LC_ALL: 'C', PATH: `/usr/bin:/bin:${process.env['PATH'] ?? '/usr/local/bin'}` },
      cwd: '/',
    })
    started.on('error', () => {})
    const { stdin, pid } = started
    if (pid === undefined || stdin === null) {
      throw new CommandError(
        '/bin/sh cannot be started, and without it nothing guards the command.',
        EXIT.system,
      )
    }
    stdin.on('error', () => {})
    started.unref()
    ;(stdin as unknown as { unref?: () => void }).unref?.()
    started.on('exit', () => {
      // Its fuse may have outlived it, and hears of no renewal any more.
      signalGroup(pid, 'SIGKILL')
      this.replace()
    })
    stdin.write(this.burnsDownAt === Infinity ? 'none\n' : secondsOf(this.burnsDownAt - performance.now()))
    return { process: started, pipe: stdin }
  }

  /** Somebody killed it: there has to be one. */
  private replace(): void {
    if (this.isOff) return
    try {
      Object.assign(this, this.start())
    } catch {
      // There is no room for a process now. To end here would leave the command to itself.
      setTimeout(() => this.replace(), AGAIN_MS)
      return
    }
    if (this.group === null) return
    this.protect(this.group)
    if (this.burnsDownAt !== Infinity) this.fuse(this.burnsDownAt - performance.now())
  }
}

const secondsOf = (ms: number): string => `${Math.max(0, ms / 1000).toFixed(3)}\n`
