import type { ClaimRef, Unknown } from '../../core/contract.ts'
import { Deadline } from './deadlines.ts'
import { failed, isNoScript } from './failure.ts'
import { keysOf } from './keys.ts'
import type { Link } from './link.ts'
import type { Requests } from './requests.ts'
import { scripts } from './scripts.gen.ts'
import type { Script } from './scripts.gen.ts'
import { unexpected } from './wire.ts'

/** Few enough for the server to begin with the first lot while the next one is put together. */
const MOST_AT_ONCE = 32

/** How scripts/one.lua and many.lua call what can be done. */
export type CommandKind = 'Q' | 'q' | 'T' | 't' | 'k' | 'r' | 'w'

/**
 * Commands on claims, on their way to the server. While one is under way, those that come up in the same moment wait
 * for each other and travel together: a command of the driver's costs several times what one more in a script does.
 * A single task never waits, for then nothing is under way.
 */
export class Commands {
  private readonly requests: Requests
  private readonly link: Link
  private readonly prefix: string
  /** Only alone does a command have a mode, or more keys than its name's. */
  private readonly alone: boolean
  private readonly mode: string
  private readonly mark: string
  private waiting: Command<unknown>[] = []
  private underWay = 0
  private scheduled = false
  private stopListening: (() => void) | null = null

  constructor(requests: Requests, { prefix, durableMark = '' }: { prefix: string; durableMark?: string }) {
    this.requests = requests
    this.link = requests.link
    this.prefix = prefix
    this.mark = durableMark
    this.mode = durableMark !== '' ? 'd' : this.link.cluster ? 'c' : ''
    // In a Cluster a script takes keys of one slot only; the driver sends the commands of a moment together.
    this.alone = this.mode !== ''
  }

  send<T>(command: Command<T>, timeout: number): Promise<T | Unknown> {
    return new Promise((resolve) => {
      command.begin(this.requests, timeout, resolve)
      const ready = this.link.ready()
      if (ready && (this.alone || (this.underWay === 0 && this.waiting.length === 0))) {
        return this.transmit([command as Command<unknown>])
      }
      this.waiting.push(command as Command<unknown>)
      if (!ready) this.waitUntilReady()
      else if (!this.scheduled) {
        this.scheduled = true
        process.nextTick(() => this.flush())
      }
    })
  }

  private waitUntilReady(): void {
    // Those that have waited in vain go now: a server may be away for long.
    if (this.waiting.length > 1_000) this.waiting = this.waiting.filter(({ settled }) => !settled)
    this.stopListening ??= this.link.onReady(() => this.flush())
  }

  private flush(): void {
    this.scheduled = false
    if (!this.link.ready()) return this.waitUntilReady()
    this.stopListening?.()
    this.stopListening = null
    const commands = this.waiting.filter(({ settled }) => !settled)
    this.waiting = []
    const size = this.alone ? 1 : MOST_AT_ONCE
    for (let at = 0; at < commands.length; at += size) this.transmit(commands.slice(at, at + size))
  }

  private transmit(commands: readonly Command<unknown>[]): void {
    this.underWay++
    const script = commands.length === 1 ? scripts.one : scripts.many
    this.link.evalsha(this.argumentsOf(commands, script.sha1)).then(
      (reply) => this.answered(commands, reply),
      (error: unknown) => {
        if (isNoScript(error)) this.transmitText(commands, script)
        else this.broke(commands, error)
      },
    )
  }

  /** A server that was restarted, flushed or promoted may not know the script. */
  private transmitText(commands: readonly Command<unknown>[], script: Script): void {
    this.link.eval(this.argumentsOf(commands, script.lua)).then(
      (reply) => this.answered(commands, reply),
      (error: unknown) => this.broke(commands, error),
    )
  }

  private argumentsOf(commands: readonly Command<unknown>[], script: string): string[] {
    const [first] = commands
    if (first !== undefined && commands.length === 1) {
      const { id, kind, terms } = first
      const [header, index, records] = keysOf(this.prefix, first.name)
      const args = [script, '3', header, index, records, id, kind]
      if (this.mode !== '') {
        args.push(terms, this.mode)
        if (this.mark !== '') args.splice(1, 4, '4', header, index, records, this.mark)
      } else if (terms !== '') args.push(terms)
      return args
    }
    const args = [script, String(3 * commands.length)]
    for (const { name } of commands) args.push(...keysOf(this.prefix, name))
    for (const { id, kind, terms } of commands) args.push(id, kind, terms)
    return args
  }

  private answered(commands: readonly Command<unknown>[], reply: unknown): void {
    this.underWay--
    if (commands.length === 1) return commands[0]?.answered(reply)
    if (!Array.isArray(reply)) return commands.forEach((command) => command.settle(failed(unexpected())))
    commands.forEach((command, i) => command.answered(reply[i]))
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
  readonly kind: CommandKind
  readonly terms: string
  settled = false
  private readonly read: (reply: unknown) => T
  private requests!: Requests
  private resolve!: (answer: T | Unknown) => void
  private timeout = 0

  constructor({ name, id }: ClaimRef, kind: CommandKind, terms: string, read: (reply: unknown) => T) {
    super()
    this.name = name
    this.id = id
    this.kind = kind
    this.terms = terms
    this.read = read
  }

  begin(requests: Requests, timeout: number, resolve: (answer: T | Unknown) => void): void {
    this.requests = requests
    this.timeout = timeout
    this.resolve = resolve
    requests.deadlines.add(this, timeout)
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
