import type { Unknown } from '../../core/contract.ts'
import { Deadline } from './deadlines.ts'
import { failed, isNoScript } from './failure.ts'
import { keysOf } from './keys.ts'
import type { Link } from './link.ts'
import type { Requests } from './requests.ts'
import { scripts } from './scripts.gen.ts'

/** So many at once keep the server from its other clients for less than a millisecond. */
const MOST_AT_ONCE = 100

/**
 * Commands on claims, on their way to scripts/step.lua. While one is under way, those that come up in the same moment
 * wait for each other and travel together: a command of the driver's own costs several times what one more in a script
 * does. A single task never waits, for then nothing is under way.
 */
export class Commands {
  private readonly link: Link
  private readonly requests: Requests
  private readonly prefix: string
  private readonly mode: string
  private waiting: Command<unknown>[] = []
  private underWay = 0
  private scheduled = false
  private stopListening: (() => void) | null = null

  constructor(requests: Requests, prefix: string, mode: string) {
    this.requests = requests
    this.link = requests.link
    this.prefix = prefix
    this.mode = mode
  }

  /** `ask`: the letter and the terms of scripts/step.lua. */
  send<T>(command: Command<T>, timeout: number): Promise<T | Unknown> {
    return new Promise((resolve) => {
      command.resolve = resolve
      command.timeout = timeout
      command.requests = this.requests
      this.requests.deadlines.add(command, timeout)
      const ready = this.link.ready()
      // In a Cluster a script takes keys of one slot only; the driver sends the commands of a moment together.
      if (ready && (this.link.cluster || (this.underWay === 0 && this.waiting.length === 0))) {
        return this.transmit([command as Command<unknown>])
      }
      this.waiting.push(command as Command<unknown>)
      if (!ready) this.stopListening ??= this.link.onReady(() => this.flush())
      else if (!this.scheduled) {
        this.scheduled = true
        process.nextTick(() => this.flush())
      }
    })
  }

  private flush(): void {
    this.scheduled = false
    if (!this.link.ready()) {
      this.waiting = this.waiting.filter(({ settled }) => !settled)
      this.stopListening ??= this.link.onReady(() => this.flush())
      return
    }
    this.stopListening?.()
    this.stopListening = null
    const commands = this.waiting.filter(({ settled }) => !settled)
    this.waiting = []
    const size = this.link.cluster ? 1 : MOST_AT_ONCE
    for (let at = 0; at < commands.length; at += size) this.transmit(commands.slice(at, at + size))
  }

  private transmit(commands: Command<unknown>[]): void {
    this.underWay++
    const args = this.argumentsOf(commands, scripts.step.sha1)
    this.link.evalsha(args).then(
      (reply) => this.answered(commands, reply),
      (error: unknown) => {
        if (isNoScript(error)) this.transmitText(commands)
        else this.broke(commands, error)
      },
    )
  }

  /** A server that was restarted, flushed or promoted may not know the script. */
  private transmitText(commands: Command<unknown>[]): void {
    const left = commands.filter(({ settled }) => !settled)
    if (left.length === 0) return this.broke(left, null)
    this.link.eval(this.argumentsOf(left, scripts.step.lua)).then(
      (reply) => this.answered(left, reply),
      (error: unknown) => this.broke(left, error),
    )
  }

  private argumentsOf(commands: readonly Command<unknown>[], script: string): string[] {
    const args = [script, '']
    for (const { name } of commands) args.push(...keysOf(this.prefix, name))
    args[1] = String(args.length - 2)
    args.push(this.mode)
    for (const { id, ask } of commands) args.push(id, ask)
    return args
  }

  private answered(commands: readonly Command<unknown>[], reply: unknown): void {
    this.underWay--
    if (!Array.isArray(reply)) {
      const error = new TypeError('the server answered with something that no script of this store returns')
      for (const command of commands) command.settle(failed(error))
      return
    }
    for (let i = 0; i < commands.length; i++) commands[i]?.answered(reply[i])
  }

  private broke(commands: readonly Command<unknown>[], error: unknown): void {
    this.underWay--
    for (const command of commands) command.settle(failed(error))
  }
}

/** One command and where its answer goes. */
export class Command<T> extends Deadline {
  readonly name: string
  readonly id: string
  readonly ask: string
  settled = false
  resolve!: (answer: T | Unknown) => void
  requests!: Requests
  timeout = 0
  private readonly read: (reply: unknown) => T

  /** `ask`: letter and terms, as scripts/step.lua wants them. */
  constructor(claim: { readonly name: string; readonly id: string }, ask: string, read: (reply: unknown) => T) {
    super()
    this.name = claim.name
    this.id = claim.id
    this.ask = ask
    this.read = read
  }

  override expire(): void {
    this.settle(this.requests.late(this.timeout))
  }

  answered(reply: unknown): void {
    if (this.settled) return
    try {
      this.settle(isFailure(reply) ? failed(new Error(reply.slice(1))) : this.read(reply))
    } catch (error) {
      this.settle(failed(error))
    }
  }

  settle(answer: T | Unknown): void {
    if (this.settled) return
    this.settled = true
    this.requests.deadlines.remove(this)
    this.resolve(answer)
  }
}

function isFailure(reply: unknown): reply is string {
  return typeof reply === 'string' && reply.startsWith('e')
}
