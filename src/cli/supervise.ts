import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { constants } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease } from '../runtime/lease.ts'
import { CommandError, EXIT, exitOfSignal } from './exit.ts'
import { Guard } from './guard.ts'
import { sessionRuns, signalGroup, signalSession } from './process-group.ts'

/** What to do when the lock is going: end the command in time, ask it to end, or nothing. */
export type OnLost = 'kill' | 'signal' | 'ignore'

export interface Supervision {
  readonly program: string
  readonly args: readonly string[]
  readonly environment: NodeJS.ProcessEnv
  readonly onLost: OnLost
  /** Milliseconds between the request to end (SIGTERM) and the end (SIGKILL). */
  readonly grace: number
  readonly ttl: number
  readonly say: (text: string) => void
}

/** Passed on to the command. SIGTSTP and SIGCONT are handled on their own. */
const FORWARDED: readonly NodeJS.Signals[] = [
  'SIGINT',
  'SIGTERM',
  'SIGHUP',
  'SIGQUIT',
  'SIGUSR1',
  'SIGUSR2',
  'SIGWINCH',
]
const LOOK_AGAIN_MS = 20
/** Where the lease is over, there is nothing to keep meanwhile. */
const MOST_KILLS = 10

/**
 * How long before the lease's end the command has to be dead. Signals and the kernel take their time, on a busy machine a
 * tenth of a second and more; and the guard, which strikes half of this later, is to find nothing left to do.
 */
export function killMargin(ttl: number): number {
  return Math.min(Math.max(ttl * 0.08, 200), ttl * 0.2, 1000)
}

/** Runs a command under a lease, which is not released here. Resolves with the exit code. */
export function supervise(lease: Lease, supervision: Supervision): Promise<number> {
  return new Supervisor(lease, supervision).run()
}

class Supervisor {
  private readonly lease: Lease
  private readonly options: Supervision
  private readonly guard: Guard
  private readonly margin: number
  /** The command's process group, and its session: it leads both. 0 while there is none. */
  private group = 0
  private timer: NodeJS.Timeout | undefined
  /** It was asked to end, because the lock is going. */
  private warned = false
  private lost = false
  /** It was said that the command cannot be told anything. */
  private powerless = false

  constructor(lease: Lease, options: Supervision) {
    this.lease = lease
    this.options = options
    this.margin = killMargin(options.ttl)
    this.guard = new Guard(options.onLost === 'kill' ? lease.remaining() - this.margin / 2 : null)
  }

  async run(): Promise<number> {
    const stopListening = this.listen()
    try {
      const { code, signal } = await this.start()
      clearTimeout(this.timer)
      await this.endRest()
      return this.truth(code, signal)
    } finally {
      clearTimeout(this.timer)
      this.guard.off()
      stopListening()
    }
  }

  private start(): Promise<Ended> {
    const { program, args, environment } = this.options
    const [name, value] = this.guard.mark
    const env = { ...environment, [name]: value }
    // `detached` makes it the leader of a process group, so that all it starts can be reached.
    const child = this.spawn(program, args, env)
    if (child.pid !== undefined) {
      this.group = child.pid
      this.guard.protect(this.group)
      this.setFuse()
      this.watchLease()
    }
    return endOf(child, program)
  }

  private spawn(program: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
    try {
      return spawn(program, args, { stdio: 'inherit', detached: true, env })
    } catch (error) {
      // Only some failures are told as events.
      throw notRun(program, error as NodeJS.ErrnoException)
    }
  }

  private listen(): () => void {
    const forward = FORWARDED.map((signal) => [signal, () => this.toGroup(signal, signalGroup)] as const)
    const handlers = [...forward, ['SIGTSTP', this.stop], ['SIGCONT', () => this.continue()]] as const
    for (const [signal, handler] of handlers) process.on(signal, handler)
    const renewed = (): void => this.setFuse()
    const aborted = (): void => this.leaseLost()
    subscribe('holdfast:renewed', renewed)
    this.lease.signal.addEventListener('abort', aborted)
    return () => {
      for (const [signal, handler] of handlers) process.off(signal, handler)
      unsubscribe('holdfast:renewed', renewed)
      this.lease.signal.removeEventListener('abort', aborted)
    }
  }

  /** Looks at the lease when it would be time to act had no renewal come. Mostly one has, and it looks again later. */
  private watchLease(): void {
    const { onLost, grace } = this.options
    clearTimeout(this.timer)
    const left = this.lease.remaining()
    if (left <= 0) return this.leaseLost()
    if (onLost === 'ignore') return
    const untilKill = left - this.margin
    if (untilKill <= grace) this.warn(`the lock cannot be renewed and ends in ${Math.round(left)} ms`)
    if (untilKill <= 0 && onLost === 'kill') return this.kill('the lock is about to end')
    this.timer = setTimeout(
      () => this.watchLease(),
      Math.max(1, untilKill > grace ? untilKill - grace : untilKill),
    )
  }

  /** Should this process be stopped or starved, so that it cannot look, somebody else kills the command in time. */
  private setFuse(): void {
    if (this.options.onLost === 'kill' && this.group !== 0)
      this.guard.fuse(this.lease.remaining() - this.margin / 2)
  }

  private leaseLost(): void {
    if (this.lost) return
    this.lost = true
    const { onLost, say } = this.options
    if (onLost === 'kill') this.kill('the lock was lost')
    else if (onLost === 'signal') this.warn('the lock was lost')
    else say('the lock was lost; the command goes on without it (--on-lost ignore)')
  }

  private warn(why: string): void {
    if (this.warned) return
    this.warned = true
    this.options.say(`${why}: asking the command to end`)
    this.toGroup('SIGTERM')
    // Stopped, it could not hear that.
    this.toGroup('SIGCONT')
  }

  private kill(why: string): void {
    this.lost = true
    this.options.say(`${why}: killing the command`)
    this.toGroup('SIGKILL')
  }

  /**
   * Ctrl-Z. The command first: it must not run on while nobody renews. The guard stays awake. Then this process as the system
   * would do it: not at all where there is no shell to say that it goes on (`ssh -t`, process 1). Then nothing happens, as
   * with any other program.
   */
  private readonly stop = (): void => {
    this.toGroup('SIGSTOP')
    process.off('SIGTSTP', this.stop)
    process.kill(process.pid, 'SIGTSTP')
    process.on('SIGTSTP', this.stop)
    this.continue()
  }

  /** Awake again, perhaps much later: the command may go on only if the lock is still ours. */
  private continue(): void {
    if (this.group === 0) return
    this.watchLease()
    this.toGroup('SIGCONT')
  }

  /** To all that the command has started, unless the command decides who of them hears of it. */
  private toGroup(signal: NodeJS.Signals, send: typeof signalSession = signalSession): void {
    if (this.group === 0 || send(this.group, signal) !== 'not-ours' || this.powerless) return
    this.powerless = true
    this.options.say(
      'the command runs as another user, and cannot be sent a signal or ended: say "sudo holdfast run …", not "holdfast run … sudo"',
    )
  }

  /** The command is over. What it left in its session would run on without the lock. */
  private async endRest(): Promise<void> {
    if (this.group === 0 || !sessionRuns(this.group)) return
    this.options.say('the command left processes behind: ending them before the lock is released')
    this.toGroup('SIGTERM')
    this.toGroup('SIGCONT')
    const enough = performance.now() + Math.min(this.options.grace, this.lease.remaining() - this.margin)
    while (performance.now() < enough) {
      await sleep(LOOK_AGAIN_MS)
      if (!sessionRuns(this.group)) return
    }
    // More than once: what starts others all the time may have started one while it was looked for. Not even that ends what
    // belongs to another user, or hangs in the kernel. While it runs, nobody else may.
    for (let kills = 0; kills < MOST_KILLS || this.lease.held; kills++) {
      this.toGroup('SIGKILL')
      await sleep(LOOK_AGAIN_MS)
      if (!sessionRuns(this.group)) return
    }
  }

  /** A command that ended well under a good lease did its work, whatever it was told last. */
  private truth(code: number | null, signal: NodeJS.Signals | null): number {
    const stoppedForLock = this.lost || (this.warned && code !== 0)
    if (stoppedForLock && this.options.onLost !== 'ignore') return EXIT.lockLost
    return signal === null ? (code ?? EXIT.software) : exitOfSignal(constants.signals[signal])
  }
}

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

function endOf(child: ChildProcess, program: string): Promise<Ended> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
    child.once('error', (error) => reject(notRun(program, error)))
  })
}

/** Where there is too little of something, it is not the command's fault. */
const SYSTEM = new Set(['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM'])

function notRun(program: string, { code = 'no reason given' }: NodeJS.ErrnoException): CommandError {
  if (code === 'ENOENT') return new CommandError(`${program}: there is no such command`, EXIT.notFound)
  const exit = SYSTEM.has(code) ? EXIT.system : EXIT.cannotExecute
  return new CommandError(`${program}: cannot be run (${code})`, exit)
}
