import { printable } from '../../core/printing.ts'
import { trustedStores } from '../../core/trusted-stores.ts'
import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  ListPage,
  ListQuery,
  NameInfo,
  ReleaseAnswer,
  ReleaseRequest,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreListener,
  Unknown,
  Voter,
  Watch,
} from '../../core/contract.ts'
import { Command } from './command.ts'
import { Commands } from './commands.ts'
import { channelOf, headerKey } from './keys.ts'
import type { Driver } from './client/driver.ts'
import { inspectName, listNames } from './inspect.ts'
import { Moving } from './moving.ts'
import type { ReplicaWish } from './replicas.ts'
import { doneOf } from './replies.ts'
import { Requests } from './requests.ts'
import { Renewals } from './renew.ts'
import { scripts } from './scripts.gen.ts'
import { RedisVoter } from './votes/store.ts'
import { Watching } from './watch.ts'
import {
  ClaimTerms,
  nextTerms,
  readClaim,
  readDowngraded,
  readRelease,
  readReleaseAndNext,
  readReleased,
  readRenewal,
  repeatedRelease,
  renewTerms,
} from './wire.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance } = globalThis

export interface RedisStoreParts {
  readonly prefix: string
  readonly capabilities: Capabilities
  readonly durableMark?: string
  readonly replicas?: ReplicaWish
  /** Looks at the server before the first command; whatever it says is the answer to all of them. */
  readonly prepare?: () => Promise<Unknown | undefined>
}

/** The claim queue of core, in scripts that the server runs. This file only says which; the scripts are the store. */
export class RedisStore implements Store {
  readonly kind = 'redis'
  readonly capabilities: Capabilities
  /** A node of a quorum is one server: none of a Cluster, nor one that a replica may follow, nor one that is not listened to. Nor with options that votes do not heed. */
  readonly votes?: Voter
  private readonly driver: Driver
  private readonly prefix: string
  private readonly requests: Requests
  private readonly commands: Commands
  private readonly terms: ClaimTerms
  private readonly renewals: Renewals | null
  private readonly moving: Moving | null
  private readonly watching: Watching
  private readonly prepare: (() => Promise<Unknown | undefined>) | null
  private prepared: boolean

  constructor(driver: Driver, { prefix, capabilities, durableMark, replicas, prepare }: RedisStoreParts) {
    this.driver = driver
    this.prefix = prefix
    this.capabilities = capabilities
    this.requests = new Requests(driver)
    this.terms = new ClaimTerms(driver.polled === true)
    this.commands = new Commands(this.requests, { prefix, durableMark, replicas })
    // A Cluster's script takes one slot, a durable one a mark, and replicas are waited for command by command.
    const plain = !driver.cluster && durableMark === undefined && replicas === undefined
    this.renewals = plain ? new Renewals(this.requests, this.commands, prefix) : null
    this.moving = driver.cluster ? new Moving(this.requests, this.commands, prefix) : null
    this.watching = new Watching(this.requests, driver.keyPrefix + prefix)
    if (plain && driver.sentinels !== true && driver.polled !== true)
      this.votes = new RedisVoter(driver, prefix)
    trustedStores.add(this)
    this.prepare = prepare ?? null
    this.prepared = prepare === undefined
  }

  claim(request: ClaimRequest, timeout: number): Promise<ClaimAnswer> {
    const whole = request.weight === request.capacity
    const kind = request.whenBusy === 'queue' ? (whole ? 'Q' : 'q') : whole ? 'T' : 't'
    const command = new Command(request, kind, this.terms.of(request), readClaim)
    command.ttl = request.ttl
    command.tokens = request.tokens
    return this.send(command, timeout)
  }

  async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const answers =
      this.renewals === null || requests.length === 1
        ? await this.renewEach(requests, timeout)
        : await this.renewMany(requests, timeout, this.renewals)
    if (answers.some(({ kind }) => kind === 'queued')) this.watching.checkAlive()
    return answers
  }

  release(claim: ReleaseRequest, next: ClaimRequest | undefined, timeout: number): Promise<ReleaseResult> {
    this.moving?.forget(claim)
    if (next === undefined) {
      const command = new Command<ReleaseResult>(claim, 'r', '', readRelease)
      command.uncontended = claim.uncontended === true
      command.ifRepeated = repeatedRelease
      command.otherwise = noRelease
      return this.send(command, timeout) as Promise<ReleaseResult>
    }
    const command = new Command(claim, 'R', nextTerms(next, this.terms), readReleaseAndNext)
    command.tokens = next.tokens
    command.ifRepeated = repeatedRelease
    command.otherwise = neither
    return this.send(command, timeout) as Promise<ReleaseResult>
  }

  withdraw(claim: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    this.moving?.forget(claim)
    return this.send(new Command(claim, 'w', '', readReleased), timeout)
  }

  downgrade(claim: ClaimRef, timeout: number): Promise<DowngradeAnswer> {
    return this.send(new Command(claim, 'd', '', readDowngraded), timeout)
  }

  watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    // There is nothing to hear: the scripts know from the claims that whoever waits will ask.
    if (this.driver.polled === true) return Promise.resolve({ kind: 'watching', stop() {} })
    return this.watching.watch(session, listener, timeout)
  }

  inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    return this.requests.ask(() => inspectName(this.driver, this.prefix, name), timeout)
  }

  list(query: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    return this.requests.ask(() => listNames(this.driver, { prefix: this.prefix, timeout }, query), timeout)
  }

  /** Whether the server answers: nothing, or why not. */
  async reach(timeout: number): Promise<Unknown | undefined> {
    const answer = await this.inspect('holdfast', timeout)
    return 'kind' in answer ? answer : undefined
  }

  /** Whether locks can be had there: nothing, or why not. A replica, a full server and missing rights are reasons. */
  async probe(timeout: number): Promise<Unknown | undefined> {
    const key = `${headerKey(this.prefix, 'holdfast')}:p`
    const args = ['2', key, `${key}:i`, channelOf(this.driver.keyPrefix + this.prefix, 'probe')]
    const answer = await this.requests.ask(
      async () => ({ kind: doneOf(await this.commands.run(scripts.probe, args)) ? 'done' : 'not' }) as const,
      timeout,
    )
    if (answer.kind === 'unknown') return answer
    return (await this.requests.ask(() => this.commands.role.confirmed(), timeout)) ?? this.prepare?.()
  }

  async close(): Promise<void> {
    this.watching.close()
    this.commands.close()
    this.requests.close()
    if (this.votes instanceof RedisVoter) this.votes.close()
    await this.driver.close()
  }

  private renewEach(requests: readonly RenewRequest[], timeout: number): Promise<RenewAnswer[]> {
    return Promise.all(
      requests.map((request) => {
        const usual = (ms: number): Promise<RenewAnswer> => this.renewOne(request, ms)
        return this.moving?.renew(request, timeout, usual) ?? usual(timeout)
      }),
    )
  }

  private renewOne(request: RenewRequest, timeout: number): Promise<RenewAnswer> {
    const kind = request.tokens === 0 ? 'k' : 'K'
    const command = new Command(request, kind, renewTerms(request), readRenewal)
    command.ttl = request.ttl
    return this.send(command, timeout)
  }

  private async renewMany(
    requests: readonly RenewRequest[],
    timeout: number,
    renewals: Renewals,
  ): Promise<readonly RenewAnswer[]> {
    const began = performance.now()
    const answers = await renewals.renew(requests, timeout)
    const rest = requests.filter((_, at) => answers[at] === null)
    if (rest.length === 0) return answers as RenewAnswer[]
    const others = await this.renewEach(rest, Math.max(1, timeout - (performance.now() - began)))
    let next = 0
    return answers.map((answer) => answer ?? (others[next++] as RenewAnswer))
  }

  private send<T>(command: Command<T>, timeout: number): Promise<T | Unknown> {
    return this.prepared ? this.commands.send(command, timeout) : this.sendPrepared(command, timeout)
  }

  private async sendPrepared<T>(command: Command<T>, timeout: number): Promise<T | Unknown> {
    const began = performance.now()
    const { prepare } = this
    if (prepare !== null && !this.prepared) {
      const problem = await this.requests.ask(prepare, timeout)
      if (problem !== undefined) return command.otherwise?.(problem) ?? problem
      this.prepared = true
    }
    return this.commands.send(command, Math.max(1, timeout - (performance.now() - began)))
  }
}

const noRelease = (problem: Unknown): ReleaseResult => ({ released: problem })
const neither = (problem: Unknown): ReleaseResult => ({ released: problem, next: problem })

// Not its client, its password or the ids of claims.
printable(RedisStore, 'Store', ({ kind }) => ({ kind }))
