import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease } from '../runtime/lease.ts'
import { CommandError, EXIT, exitOfSignal } from './exit.ts'
import { Guard } from './guard.ts'
import { groupRuns, signalGroup } from './process-group.ts'

export type OnLost = 'kill' | 'signal' | 'ignore'

export interface Supervision {
  readonly command: readonly [string, ...string[]]
  readonly environment: NodeJS.ProcessEnv
  readonly onLost: OnLost
  /** Milliseconds between the request to end (SIGTERM) and the end (SIGKILL). */
  readonly grace: number
  readonly ttl: number
  say(text: string): void
}

/** Passed on to the command. Those that ask the terminal to stop are handled on their own. */
const FORWARDED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH']
const LOOK_AGAIN_MS = 20

/**
 * How long before the lease's end the command has to be dead: signals and the kernel take their time, and the guard,
 * which strikes half of it later, is to find nothing left to do.
 */
export function killMargin(ttl: number): number {
  return Math.min(Math.max(ttl * 0.04, 100), 500)
}

/** Runs the command under the lease; the lease is not released here. Resolves with the exit code. */
export function supervise(lease: Lease, supervision: Supervision): Promise<number> {
  return new Supervisor(lease, supervision).run()
}

class Supervisor {
  private readonly lease: Lease
  private readonly options: Supervision
  private readonly guard = new Guard()
  private readonly margin: number
  private group = 0
  private timer: NodeJS.Timeout | undefined
  /** It was asked to end because the lock is going. */
  private warned = false
  private lost = false

  constructor(lease: Lease, options: Supervision) {
    this.lease = lease
    this.options = options
    this.margin = killMargin(options.ttl)
  }

  async run(): Promise<number> {
    const listeners = this.listen()
    try {
      const child = this.start()
      const [code, signal] = await ended(child)
      clearTimeout(this.timer)
      await this.endRest()
      if (this.lost || (this.warned && this.options.onLost === 'kill')) return EXIT.lockLost
      return signal === null ? (code ?? EXIT.software) : exitOfSignal(constants.signals[signal])
    } finally {
      clearTimeout(this.timer)
      this.guard.off()
      listeners.stop()
    }
  }

  private start(): ChildProcess {
    const { command, environment, onLost } = this.options
    const [program, ...args] = command
    // `detached` makes it the leader of a session and a process group, so that all it starts can be reached.
    const child = spawn(program, args, { stdio: 'inherit', detached: true, env: environment })
    if (child.pid === undefined) return child
    this.group = child.pid
    this.guard.protect(this.group)
    this.watchLease()
    if (onLost === 'ignore') this.guardAgainst(null)
    return child
  }

  /** Looks at the lease when it would be time to act if no renewal had come; mostly one has, and it looks again later. */
  private watchLease(): void {
    const { onLost, grace } = this.options
    clearTimeout(this.timer)
    const left = this.lease.remaining()
    if (left <= 0) return this.leaseLost()
    if (onLost !== 'kill') return this.lookAfter(onLost === 'signal' && !this.warned ? left - this.margin : left)
    const untilKill = left - this.margin
    if (untilKill <= 0) return this.kill(`the lock ends in ${Math.round(left)} ms and could not be renewed`)
    if (untilKill <= grace) this.warn(`the lock could not be renewed; it ends in ${Math.round(left)} ms`)
    this.guardAgainst(left)
    this.lookAfter(untilKill <= grace ? untilKill : untilKill - grace)
  }

  private lookAfter(ms: number): void {
    this.timer = setTimeout(() => this.watchLease(), Math.max(1, ms))
  }

  private guardAgainst(left: number | null): void {
    if (left !== null) this.guard.fuse(left - this.margin / 2)
  }

  private leaseLost(): void {
    if (this.lost) return
    this.lost = true
    const why = 'the lock was lost'
    const { onLost, say } = this.options
    if (onLost === 'kill') this.kill(why)
    else if (onLost === 'signal') this.warn(why)
    else say(`${why}; the command goes on without it (--on-lost ignore)`)
  }

  private warn(why: string): void {
    if (this.warned) return
    this.warned = true
    this.options.say(`${why}: asking the command to end (SIGTERM)`)
    signalGroup(this.group, 'SIGTERM')
    // One that is stopped could not hear it.
    signalGroup(this.group, 'SIGCONT')
  }

  private kill(why: string): void {
    this.lost = true
    this.options.say(`${why}: killing the command`)
    signalGroup(this.group, 'SIGKILL')
  }

  /** The command is over. What it left running in its group would run on without the lock. */
  private async endRest(): Promise<void> {
    if (this.group === 0 || !groupRuns(this.group)) return
    this.options.say('the command has ended but left processes behind: ending them')
    signalGroup(this.group, 'SIGTERM')
    signalGroup(this.group, 'SIGCONT')
    const enough = performance.now() + Math.min(this.options.grace, Math.max(0, this.lease.remaining() - this.margin))
    while (performance.now() < enough) {
      await sleep(LOOK_AGAIN_MS)
      if (!groupRuns(this.group)) return
    }
    signalGroup(this.group, 'SIGKILL')
  }
}
