import type { ReleaseAnswer, VoteAnswer, VoteRef, VoteRelease, VoteRequest } from '../../../core/contract.ts'
import { headerKey } from '../keys.ts'
import { scripts } from '../scripts.gen.ts'
import type { Script } from '../scripts.gen.ts'
import { Question } from './asking.ts'
import type { VoteRequests } from './asking.ts'
import type { OpenVote, OpenVotes } from './open.ts'
import * as wire from './wire.ts'
import { DAY_MS } from '../wire.ts'

// All nodes are asked the same, one right after the other: what they are sent is put together once.
const lastVote = { request: null as VoteRequest | null, prefix: '', args: [] as string[] }
const lastRelease = { request: null as VoteRelease | null, prefix: '', key: '', field: null as string | null }

function argumentsOf(request: VoteRequest, prefix: string): string[] {
  if (lastVote.request === request && lastVote.prefix === prefix) return lastVote.args
  const { name, ttl, tokens, probation, interest, owner } = request
  const args = [
    scripts.vote.sha1,
    '1',
    headerKey(prefix, name),
    fieldOf(request),
    `${tokens} ${probation} ${interest ? 1 : 0} ${owner}`,
    String(ttl + DAY_MS),
  ]
  if (tokens > 1) args.push(String(tokens - 1))
  lastVote.request = request
  lastVote.prefix = prefix
  lastVote.args = args
  return args
}

/** Where a cell keeps its holder. */
function fieldOf({ id, attempt }: VoteRef): string {
  return `${id} ${attempt}`
}

export class Vote extends Question<VoteAnswer> implements OpenVote {
  readonly script: Script = scripts.vote
  readonly ref: VoteRequest
  givenUp = false
  renewed = false
  untold = false
  earlier: OpenVote | undefined = undefined
  private readonly asked: string[]
  private readonly open: OpenVotes
  private readonly giveBack: (vote: OpenVote, timeout: number) => void

  constructor(
    request: VoteRequest,
    prefix: string,
    open: OpenVotes,
    giveBack: (vote: OpenVote, timeout: number) => void,
  ) {
    super()
    this.ref = request
    this.asked = argumentsOf(request, prefix)
    this.open = open
    this.giveBack = giveBack
  }

  override begin(to: VoteRequests, timeout: number, listener: (answer: VoteAnswer) => void): void {
    this.open.add(this)
    super.begin(to, timeout, listener)
  }

  get key(): string {
    return this.asked[2] ?? ''
  }

  args(): string[] {
    return this.asked
  }

  read(reply: unknown): VoteAnswer {
    return wire.readVote(reply, this.ref.tokens)
  }

  protected override wanted(): boolean {
    return !this.givenUp
  }

  protected override over(untold: boolean): void {
    if (untold) this.open.timedOut(this)
    else this.open.delete(this)
  }

  /** A vote that a renewal follows stays, unless its claim is over: else that would be counted, and gone right after. */
  protected override late({ kind }: VoteAnswer): void {
    if (kind === 'granted' && (this.givenUp || !this.renewed)) this.giveBack(this, this.timeout)
  }
}

export class Release extends Question<ReleaseAnswer> {
  readonly script: Script = scripts.voteRelease
  readonly key: string
  override readonly field: string | null
  private readonly release: VoteRelease
  private readonly tell: boolean

  constructor(release: VoteRelease, prefix: string, tell: boolean) {
    super()
    if (lastRelease.request !== release || lastRelease.prefix !== prefix) {
      lastRelease.request = release
      lastRelease.prefix = prefix
      lastRelease.key = headerKey(prefix, release.name)
      lastRelease.field = release.uncontended === true && release.attempt !== 0 ? fieldOf(release) : null
    }
    this.key = lastRelease.key
    this.field = lastRelease.field
    this.release = release
    this.tell = tell
  }

  args(): string[] {
    const { id, attempt } = this.release
    return [this.script.sha1, '1', this.key, id, String(attempt), this.tell ? '1' : '0']
  }

  read(reply: unknown): ReleaseAnswer {
    return wire.readGone(reply)
  }
}

/** The release of a vote that nobody heard of in time. A renewal that has overtaken it counts on that vote. */
export class GiveBack extends Release {
  private readonly vote: OpenVote

  constructor(vote: OpenVote, prefix: string) {
    const { name, id, attempt } = vote.ref
    super({ name, id, attempt }, prefix, false)
    this.vote = vote
  }

  protected override wanted(): boolean {
    return this.vote.givenUp || !this.vote.renewed
  }
}

/** Anything that is not asked so often that it would be worth more. */
export class Ask<T> extends Question<T> {
  readonly script: Script
  readonly read: (reply: unknown) => T
  private readonly sent: string[]

  constructor(script: Script, keys: readonly string[], args: readonly string[], read: (reply: unknown) => T) {
    super()
    this.script = script
    this.sent = [script.sha1, String(keys.length), ...keys, ...args]
    this.read = read
  }

  get key(): string {
    return this.sent[2] ?? ''
  }

  args(): string[] {
    return this.sent
  }
}
