import type { ClaimRef, Unknown } from '../../core/contract.ts'
import { Deadline } from '../../transport/deadlines.ts'
import { failed } from './failure.ts'
import type { Requests } from './requests.ts'

/** What can be done to a claim, as scripts/one.lua calls it. */
export type CommandKind = 'Q' | 'q' | 'T' | 't' | 'k' | 'K' | 'r' | 'R' | 'w' | 'd'

/** One command on a claim, and where its answer goes. Is answered once, by the server or by the clock. */
export class Command<T> extends Deadline {
  readonly name: string
  readonly id: string
  readonly kind: CommandKind
  readonly terms: string
  /** Milliseconds that a grant is to last from now; 0 if the command asks for none. */
  ttl = 0
  /** How many tokens a claim asks for. */
  tokens = 0
  settled = false
  /** The driver was given it. */
  sent = false
  /** A release that the holder can do without a script; see ReleaseRequest. */
  uncontended = false
  /** Counts connections: the one that it was given to. */
  connection = 0
  /** Called if the command was not answered in time. */
  onSilence: ((name: string, waited: number, command: Command<unknown>) => void) | null = null
  /** What takes the place of the answer when there is none. */
  otherwise: ((problem: Unknown) => T) | null = null
  /** What the answer says if the driver may have sent the command twice. */
  ifRepeated: ((answer: T) => T) | null = null
  private readonly read: (reply: unknown, tokens: number) => T
  private requests!: Requests
  private resolve!: (answer: T | Unknown) => void
  private timeout = 0

  constructor(
    { name, id }: ClaimRef,
    kind: CommandKind,
    terms: string,
    read: (reply: unknown, tokens: number) => T,
  ) {
    super()
    this.name = name
    this.id = id
    this.kind = kind
    this.terms = terms
    this.read = read
  }

  get claims(): boolean {
    return 'QqTt'.includes(this.kind)
  }

  begin(requests: Requests, timeout: number, resolve: (answer: T | Unknown) => void): void {
    this.requests = requests
    this.timeout = timeout
    this.resolve = resolve
    requests.deadlines.add(this, requests.timeFor(timeout))
  }

  override expire(): void {
    this.fail(this.requests.late(this.timeout))
    this.onSilence?.(this.name, this.timeout, this as Command<unknown>)
  }

  /** `repeated`: the driver may have sent it twice, and the answer may be the one to the second copy. */
  answered(reply: unknown, repeated: boolean): void {
    if (this.settled) return
    let answer: T
    try {
      const failure = failureIn(reply)
      if (failure !== undefined) return this.fail(failed(new Error(failure)))
      answer = this.read(reply, this.tokens)
      if (repeated && this.ifRepeated !== null) answer = this.ifRepeated(answer)
    } catch (error) {
      return this.fail(failed(error))
    }
    this.settle(answer)
  }

  fail(problem: Unknown): void {
    this.settle(this.otherwise === null ? problem : this.otherwise(problem))
  }

  private settle(answer: T | Unknown): void {
    if (this.settled) return
    this.settled = true
    this.requests.deadlines.remove(this)
    this.resolve(answer)
  }
}

/** Of many commands in one script, one may fail by itself. */
function failureIn(reply: unknown): string | undefined {
  if (typeof reply !== 'string' && !Buffer.isBuffer(reply)) return undefined
  const text = String(reply)
  return text.startsWith('e') ? text.slice(1) : undefined
}
