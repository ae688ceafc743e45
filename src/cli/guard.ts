import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { Writable } from 'node:stream'
import { CommandError, EXIT } from './exit.ts'

/**
 * A dead man's switch. A second process holds the other end of a pipe and kills the command's process group
 *  - when the pipe closes: holdfast is gone, however it went (SIGKILL, a crash, the kernel out of memory);
 *  - when the fuse burns down: holdfast still exists but does not renew, because it is stopped or starved.
 *
 * It is a shell and not a Node: that takes 1 ms and 1 MB instead of 40 ms and 40 MB for every command that is run.
 * PR_SET_PDEATHSIG (setpriv --pdeathsig) was the other candidate; it exists on Linux only, reaches the command but not
 * what the command started, and does nothing about a holdfast that is merely stopped.
 *
 * Lines on its stdin: first the process group, then seconds until the fuse burns down (each replaces the one before),
 * at last "off". What is not covered is the millisecond between the command's start and the first line.
 */
const SCRIPT = `
trap '' HUP INT QUIT
fuse=
cut() { if [ -n "$fuse" ]; then kill "$fuse" 2>/dev/null; wait "$fuse"; fuse=; fi; }
burn() {
  trap 'kill "$!" 2>/dev/null; exit' TERM
  sleep "$1" &
  wait "$!" && kill -s KILL -- "-$group"
}
read -r group || exit 0
while read -r line; do
  cut
  if [ "$line" = off ]; then exit 0; fi
  burn "$line" & fuse=$!
done
kill -s KILL -- "-$group" 2>/dev/null
cut
`

export class Guard {
  private process: ChildProcess
  private pipe: Writable
  private group: number | null = null
  private burnsDownAt = Infinity
  private isOff = false

  constructor() {
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
    this.pipe.write(`${Math.max(0, ms / 1000).toFixed(3)}\n`)
  }

  off(): void {
    this.isOff = true
    // Without a group it has read nothing yet and goes when the pipe closes.
    if (this.group !== null) this.pipe.write('off\n')
    this.pipe.end()
  }

  private start(): { process: ChildProcess; pipe: Writable } {
    const started = spawn('/bin/sh', ['-c', SCRIPT, 'holdfast-guard'], {
      // A session of its own: what stops or ends this process's group must not reach it.
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: { PATH: '/usr/bin:/bin' },
      cwd: '/',
    })
    started.on('error', () => {})
    const { stdin } = started
    if (started.pid === undefined || stdin === null) {
      throw new CommandError(
        '/bin/sh cannot be started, and without it nothing guards the command.',
        EXIT.system,
      )
    }
    stdin.on('error', () => {})
    started.unref()
    ;(stdin as unknown as { unref?: () => void }).unref?.()
    started.on('exit', () => this.replace())
    return { process: started, pipe: stdin }
  }

  /** Somebody killed it: there has to be one. */
  private replace(): void {
    if (this.isOff) return
    Object.assign(this, this.start())
    if (this.group === null) return
    this.protect(this.group)
    if (this.burnsDownAt !== Infinity) this.fuse(this.burnsDownAt - performance.now())
  }
}
