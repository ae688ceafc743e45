import type {
  ClaimRef,
  ConfirmAnswer,
  ConfirmRequest,
  ExtendAnswer,
  ExtendRequest,
  Free,
  ReleaseAnswer,
  StoreListener,
  Unknown,
  VoteAnswer,
  VoteInfo,
  Voter,
  VoteRef,
  VoteRequest,
  Watch,
} from '../../core/contract.ts'
import { headerKey, headerPattern, nameOfHeader } from './keys.ts'
import type { Link } from './link.ts'
import { runScript } from './run-script.ts'
import { scripts } from './scripts.gen.ts'
import { loadScript, VoteRequests } from './votes-asking.ts'
import type { Question } from './votes-asking.ts'
import * as wire from './votes-wire.ts'
import { Watching } from './watching.ts'

/** Claims that are renewed by one script. */
const MOST_AT_ONCE = 50
const SCAN_COUNT = 500
/** How much longer than a lease its cell lives; the scripts know the same number. */
const KEPT_MS = 86_400_000

let lastAsked: VoteRequest | null = null
let lastNode = ''
let lastArguments: readonly string[] = []

class Vote implements Question<VoteAnswer> {
  readonly script: Question<VoteAnswer>['script'] = scripts.vote
  readonly args: readonly string[]
  readonly timeout: number
  readonly once = true
  private readonly voter: RedisVoter
  private readonly request: VoteRequest

  constructor(voter: RedisVoter, request: VoteRequest, timeout: number) {
    this.args = voter.argumentsOf(request)
    this.timeout = timeout
    this.voter = voter
    this.request = request
  }

  read(reply: unknown): VoteAnswer {
    return wire.readVote(reply, this.request.tokens)
  }

  late(answer: VoteAnswer): void {
    const { name, id, attempt } = this.request
    if (answer.kind === 'granted') this.voter.giveBack({ name, id, attempt }, this.timeout)
  }
}

/**
 * One Redis server as a node of a quorum: the rule of core/vote-cell.ts, in scripts. It has keys of its own, beside those
 * of ordinary locks: `<prefix>:v:{name}`, and `<prefix>:v:node`, without which the node is known to have lost its memory.
 */
export class RedisVoter implements Voter {
  private readonly link: Link
  private readonly prefix: string
  private readonly node: string
  private readonly requests: VoteRequests
  private readonly watching: Watching

  constructor(link: Link, prefix: string) {
    this.link = link
    this.prefix = `${prefix}:v`
    this.node = `${this.prefix}:node`
    this.requests = new VoteRequests(link)
    this.watching = new Watching(this.requests.requests, link.keyPrefix + this.prefix, wire.readNotice)
  }

  vote(request: VoteRequest, timeout: number): Promise<VoteAnswer> {
    return this.requests.ask<VoteAnswer>(new Vote(this, request, timeout))
  }

  /** The arguments of a vote. All nodes are asked the same, one right after the other: they are put together once. */
  argumentsOf(request: VoteRequest): readonly string[] {
    if (lastAsked === request && lastNode === this.node) return lastArguments
    const { name, id, attempt, ttl, tokens, probation, interest, owner } = request
    const kept = `${id} ${attempt} ${tokens} ${owner}`
    const terms = `${probation} ${interest ? 1 : 0}`
    lastAsked = request
    lastNode = this.node
    lastArguments = ['2', headerKey(this.prefix, name), this.node, kept, String(ttl + KEPT_MS), terms]
    return lastArguments
  }

  confirm(request: ConfirmRequest, timeout: number): Promise<ConfirmAnswer> {
    const { name, id, attempt, base, token, count } = request
    const args = ['1', headerKey(this.prefix, name), id, ...[attempt, base, token, count].map(String)]
    return this.requests.ask<ConfirmAnswer>({
      script: scripts.voteConfirm,
      args,
      read: wire.readConfirm,
      timeout,
    })
  }

  async extend(requests: readonly ExtendRequest[], timeout: number): Promise<readonly ExtendAnswer[]> {
    const lots: (readonly ExtendRequest[])[] = []
    for (let at = 0; at < requests.length; at += MOST_AT_ONCE)
      lots.push(requests.slice(at, at + MOST_AT_ONCE))
    const answers = await Promise.all(lots.map((lot) => this.extendLot(lot, timeout)))
    return answers.flat()
  }

  release({ name, id, attempt }: VoteRef, tell: boolean, timeout: number): Promise<ReleaseAnswer> {
    return this.requests.ask<ReleaseAnswer>({
      script: scripts.voteRelease,
      args: ['1', headerKey(this.prefix, name), id, String(attempt), tell ? '1' : '0'],
      read: wire.readGone,
      timeout,
    })
  }

  withdraw({ name, id }: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    return this.requests.ask<ReleaseAnswer>({
      script: scripts.voteWithdraw,
      args: ['1', headerKey(this.prefix, name), id],
      read: wire.readGone,
      timeout,
    })
  }

  watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    return this.watching.watch(session, listener, timeout)
  }

  inspect(name: string, timeout: number): Promise<VoteInfo | Free | Unknown> {
    return this.requests.ask({
      script: scripts.voteInspect,
      args: ['1', headerKey(this.prefix, name)],
      read: (reply) => wire.readHolder(name, reply),
      timeout,
    })
  }

  names(prefix: string, timeout: number): Promise<readonly string[] | Unknown> {
    return this.requests.other(() => this.scan(prefix), timeout)
  }

  identify(
    probation: number,
    timeout: number,
  ): Promise<{ readonly kind: 'node'; readonly server: string; readonly readyIn: number } | Unknown> {
    return this.requests.other(async () => {
      const [node] = await this.link.primaries()
      const info = String(await node?.send(['info', 'server']))
      const server = /^run_id:(\w+)/m.exec(info)?.[1]
      if (server === undefined) throw new Error('the server does not say its run_id')
      await loadScript(this.link, scripts.vote)
      const ready = await runScript(this.link, scripts.voteReadiness, ['1', this.node, String(probation)])
      return { kind: 'node', server, readyIn: wire.readReadiness(ready) } as const
    }, timeout)
  }

  close(): void {
    this.watching.close()
    this.requests.close()
  }

  private async extendLot(lot: readonly ExtendRequest[], timeout: number): Promise<readonly ExtendAnswer[]> {
    const keys = lot.map(({ name }) => headerKey(this.prefix, name))
    const answers = await this.requests.ask({
      script: scripts.voteExtend,
      args: [String(keys.length + 1), ...keys, this.node, ...lot.flatMap(wire.extendArguments)],
      read: (reply) => wire.readExtensions(reply, lot),
      timeout,
    })
    return 'kind' in answers ? lot.map(() => answers) : answers
  }

  /** Nobody heard of the grant in time. */
  giveBack(ref: VoteRef, timeout: number): void {
    this.release(ref, false, timeout).catch(() => {})
  }

  private async scan(start: string): Promise<readonly string[]> {
    const [node] = await this.link.primaries()
    const pattern = headerPattern(this.link.keyPrefix + this.prefix, start)
    const names = new Set<string>()
    for (let cursor = '0'; node !== undefined;) {
      const how = ['scan', cursor, 'MATCH', pattern, 'COUNT', String(SCAN_COUNT), 'TYPE', 'string']
      const [next, keys] = (await node.send(how)) as [string, readonly string[]]
      const found = keys.map((key) => nameOfHeader(String(key))).filter((name) => name !== undefined)
      const held = await Promise.all(found.map((name) => this.isHeld(name)))
      found.forEach((name, at) => held[at] === true && names.add(name))
      cursor = String(next)
      if (cursor === '0') break
    }
    return [...names]
  }

  private async isHeld(name: string): Promise<boolean> {
    const reply = await runScript(this.link, scripts.voteInspect, ['1', headerKey(this.prefix, name)])
    return !('kind' in wire.readHolder(name, reply))
  }
}
