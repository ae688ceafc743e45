import type {
  AccountableVoter,
  ClaimRef,
  ConfirmAnswer,
  ConfirmRequest,
  DirectVoter,
  ExtendAnswer,
  ExtendRequest,
  Free,
  ListPage,
  ListQuery,
  ReleaseAnswer,
  StoreListener,
  Unknown,
  VoteAnswer,
  VoteInfo,
  VoteRelease,
  VoteRequest,
  Watch,
} from '../../../core/contract.ts'
import { InvalidArgumentError, UnsupportedError } from '../../../core/errors.ts'
import { unknown } from '../../../core/unknown.ts'
import { isCrossSlot, isForbiddenKey, maybeInUse } from '../failure.ts'
import { headerKey, headerPattern, nameOfHeader } from '../keys.ts'
import type { Driver } from '../client/driver.ts'
import { doneOf } from '../replies.ts'
import { LocalWrites, roleIn } from '../role.ts'
import { runScript } from '../run-script.ts'
import { BEGINNING, ENOUGH, placeIn, placeText, walk } from '../scan.ts'
import type { ScanPlace } from '../scan.ts'
import { scripts } from '../scripts.gen.ts'
import { loadScript, VoteRequests } from './asking.ts'
import { Ask, GiveBack, Release, Vote } from './questions.ts'
import { evicts, isLoading, isUnused, lookingOn, StartedFromSnapshot } from './unused.ts'
import { OpenVotes } from './open.ts'
import type { OpenVote } from './open.ts'
import * as wire from './wire.ts'
import { Watching } from '../watch.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance } = globalThis

/** Nobody waits for the answer; it is only known when to forget it. */
const GIVE_BACK_MS = 1_000
/** Claims that are renewed by one script. */
const MOST_AT_ONCE = 50

/**
 * One Redis server as a node of a quorum: the rule of core/vote-cell.ts, in scripts. It has keys of its own, beside those
 * of ordinary locks: `<prefix>:v:{name}`, and `<prefix>:v:node`, without which the node is known to have lost its memory.
 */
export class RedisVoter implements AccountableVoter, DirectVoter {
  private readonly driver: Driver
  private readonly prefix: string
  private readonly node: string
  private readonly requests: VoteRequests
  private readonly open: OpenVotes
  private readonly watching: Watching

  constructor(driver: Driver, prefix: string) {
    this.driver = driver
    this.prefix = `${prefix}:v`
    this.node = `${this.prefix}:node`
    this.open = new OpenVotes((vote) => this.giveBack(vote, GIVE_BACK_MS))
    this.requests = new VoteRequests(driver, this.open)
    this.watching = new Watching(this.requests.requests, driver.keyPrefix + this.prefix, wire.readNotice)
  }

  vote(request: VoteRequest, timeout: number): Promise<VoteAnswer> {
    return new Promise((resolve) => this.voteThen(request, timeout, resolve))
  }

  voteThen(request: VoteRequest, timeout: number, heard: (answer: VoteAnswer) => void): void {
    this.requests.tell<VoteAnswer>(new Vote(request, this.prefix, this.open, this.giveBack), timeout, heard)
  }

  confirm(request: ConfirmRequest, timeout: number): Promise<ConfirmAnswer> {
    const { name, id, attempt, base, token, count } = request
    const args = [id, ...[attempt, base, token, count].map(String)]
    const question = new Ask(scripts.voteConfirm, [this.cell(name)], args, wire.readConfirm)
    return this.requests.ask<ConfirmAnswer>(question, timeout)
  }

  async extend(requests: readonly ExtendRequest[], timeout: number): Promise<readonly ExtendAnswer[]> {
    const lots: (readonly ExtendRequest[])[] = []
    for (let at = 0; at < requests.length; at += MOST_AT_ONCE)
      lots.push(requests.slice(at, at + MOST_AT_ONCE))
    const answers = await Promise.all(lots.map((lot) => this.extendLot(lot, timeout)))
    return answers.flat()
  }

  release(ref: VoteRelease, tell: boolean, timeout: number): Promise<ReleaseAnswer> {
    return new Promise((resolve) => this.releaseThen(ref, tell, timeout, resolve))
  }

  releaseThen(
    ref: VoteRelease,
    tell: boolean,
    timeout: number,
    heard: (answer: ReleaseAnswer) => void,
  ): void {
    this.open.giveUp(ref, ref.attempt)
    this.requests.tell<ReleaseAnswer>(new Release(ref, this.prefix, tell), timeout, heard)
  }

  withdraw({ name, id }: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    this.open.giveUp({ name, id }, 0)
    const question = new Ask(scripts.voteWithdraw, [this.cell(name)], [id], wire.readGone)
    return this.requests.ask<ReleaseAnswer>(question, timeout)
  }

  watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    return this.watching.watch(session, listener, timeout)
  }

  inspect(name: string, timeout: number): Promise<VoteInfo | Free | Unknown> {
    const read = (reply: unknown): VoteInfo | Free => wire.readHolder(name, reply)
    return this.requests.ask(new Ask(scripts.voteInspect, [this.cell(name)], [], read), timeout)
  }

  names(query: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    const until = performance.now() + timeout * ENOUGH
    return this.requests.other(() => this.page(query, until), timeout)
  }

  identify(
    probation: number,
    timeout: number,
  ): Promise<{ readonly kind: 'node'; readonly server: string; readonly readyIn: number } | Unknown> {
    return this.requests.other(async () => {
      const info = await this.info()
      if (isLoading(info)) return unknown(new Error('LOADING the server is loading its data'))
      // A vote there would be gone with the next copy of its primary.
      if (roleIn(info) === 'replica') return unknown(new LocalWrites())
      const problem = evicts(info)
      if (problem !== undefined) return unknown(new UnsupportedError(problem, { store: 'redis' }))
      const server = runIdOf(info)
      const wait = lookingOn(info, probation)
      if (wait > 0) return unknown(new StartedFromSnapshot(wait))
      await loadScript(this.driver, scripts.vote)
      const ready = await runScript(this.driver, scripts.voteReadiness, ['1', this.node, String(probation)])
      return { kind: 'node', server, readyIn: wire.readReadiness(ready) } as const
    }, timeout)
  }

  async probe(timeout: number): Promise<Unknown | undefined> {
    const key = `${this.cell('holdfast')}:p`
    const answer = await this.requests.other(async () => {
      await runScript(this.driver, scripts.voteProbe, ['2', key, `${key}:i`])
      return { kind: 'done' } as const
    }, timeout)
    return answer.kind === 'unknown' ? answer : undefined
  }

  unused(
    probation: number,
    timeout: number,
  ): Promise<{ readonly kind: 'unused'; readonly server: string } | { readonly kind: 'used' } | Unknown> {
    return this.requests.other(async () => {
      const info = await this.info()
      return isUnused(info, probation)
        ? ({ kind: 'unused', server: runIdOf(info) } as const)
        : ({ kind: 'used' } as const)
    }, timeout)
  }

  onMove(listener: (reachable: boolean) => void): void {
    this.requests.onMove(listener)
  }

  begin(server: string, timeout: number): Promise<{ readonly kind: 'begun' | 'used' } | Unknown> {
    return this.requests.other(async () => {
      const done = await this.driver.eval([scripts.voteBegin.lua, '1', this.node, server])
      return { kind: doneOf(done) ? 'begun' : 'used' } as const
    }, timeout)
  }

  close(): void {
    this.watching.close()
    this.requests.close()
  }

  private async info(): Promise<string> {
    const [node] = await this.driver.primaries()
    // Some let us see only which server it is.
    const all = node?.send(['info', 'all']).catch(() => node.send(['info', 'server']))
    return String(await all)
  }

  private cell(name: string): string {
    return headerKey(this.prefix, name)
  }

  private async extendLot(lot: readonly ExtendRequest[], timeout: number): Promise<readonly ExtendAnswer[]> {
    for (const one of lot) this.open.renew(one)
    const keys = lot.map(({ name }) => this.cell(name))
    const args = lot.flatMap(wire.extendArguments)
    const read = (reply: unknown): readonly ExtendAnswer[] => wire.readExtensions(reply, lot)
    const answers = await this.requests.ask(new Ask(scripts.voteExtend, keys, args, read), timeout)
    if (!('kind' in answers)) return answers
    const { cause } = answers
    // A server for a Cluster takes keys of one slot only; and what is refused for one name may be granted for the others.
    if (lot.length === 1 || !(isCrossSlot(cause) || isForbiddenKey(cause))) return lot.map(() => answers)
    return (await Promise.all(lot.map((one) => this.extendLot([one], timeout)))).flat()
  }

  /** Nobody heard of the grant in time. It stays open until that is done: a renewal may come in between. */
  private readonly giveBack = (vote: OpenVote, timeout: number): void => {
    vote.untold = false
    this.open.add(vote)
    this.requests.tell<ReleaseAnswer>(new GiveBack(vote, this.prefix), timeout, () => this.open.delete(vote))
  }

  private async page({ prefix = '', limit = 100, cursor }: ListQuery, until: number): Promise<ListPage> {
    const [node] = await this.driver.primaries()
    const pattern = headerPattern(this.driver.keyPrefix + this.prefix, prefix)
    const names = new Set<string>()
    const from = startIn(cursor)
    const page = { names, limit, until, inUse: (keys: readonly string[]) => this.heldOf(keys) }
    const rest = node && (await walk(node, pattern, from, page))
    return { names: [...names], ...(rest && { cursor: placeText(rest) }) }
  }

  /** The names behind the keys that are held here, in order. */
  private async heldOf(keys: readonly string[]): Promise<readonly string[]> {
    const names = keys.map(nameOfHeader).filter((name) => name !== undefined)
    const held = await Promise.all(names.map((name) => this.isHeld(name)))
    return names.filter((_, at) => held[at] === true).sort()
  }

  private async isHeld(name: string): Promise<boolean> {
    try {
      const reply = await runScript(this.driver, scripts.voteInspect, ['1', this.cell(name)])
      return !('kind' in wire.readHolder(name, reply))
    } catch (error) {
      return maybeInUse(error)
    }
  }
}

function startIn(cursor: string | undefined): ScanPlace {
  const place = cursor === undefined ? BEGINNING : placeIn(cursor)
  if (place !== undefined) return place
  throw new InvalidArgumentError('cursor must be one that a former page came with', { argument: 'cursor' })
}

function runIdOf(info: string): string {
  const server = /^run_id:(\w+)/m.exec(info)?.[1]
  if (server === undefined) throw new Error('the server does not say its run_id')
  return server
}
