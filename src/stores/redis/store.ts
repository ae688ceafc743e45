import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  ListPage,
  ListQuery,
  NameInfo,
  ReleaseAnswer,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreListener,
  Unknown,
  Watch,
} from '../../core/contract.ts'
import { Command, Commands } from './commands.ts'
import { keysOf } from './keys.ts'
import type { Link } from './link.ts'
import { runScript } from './run-script.ts'
import { Requests } from './requests.ts'
import { scripts } from './scripts.gen.ts'
import { Watching } from './watching.ts'
import {
  readClaim,
  readName,
  readRelease,
  readReleaseAndNext,
  readReleased,
  readRenewal,
  renewTerms,
  terms,
} from './wire.ts'

interface RedisStoreParts {
  readonly prefix: string
  readonly capabilities: Capabilities
}

export class RedisStore implements Store {
  readonly kind = 'redis'
  readonly capabilities: Capabilities
  private readonly requests: Requests
  private readonly watching: Watching
  private readonly prefix: string
  private readonly commands: Commands
  private readonly link: Link

  constructor(link: Link, { prefix, capabilities }: RedisStoreParts) {
    this.prefix = prefix
    this.link = link
    this.requests = new Requests(link)
    this.commands = new Commands(this.requests, { prefix })
    this.watching = new Watching(this.requests, link.keyPrefix + prefix)
    this.capabilities = capabilities
  }

  claim(request: ClaimRequest, timeout: number): Promise<ClaimAnswer> {
    const whole = request.weight === request.capacity
    const kind = request.whenBusy === 'queue' ? (whole ? 'Q' : 'q') : whole ? 'T' : 't'
    const read = (reply: unknown): ClaimAnswer => readClaim(reply, request.tokens)
    return this.commands.send(new Command(request, kind, terms(request), read), timeout)
  }

  renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    return Promise.all(
      requests.map((request) =>
        this.commands.send(new Command(request, 'k', renewTerms(request), readRenewal), timeout),
      ),
    )
  }

  async release(claim: ClaimRef, next: ClaimRequest | undefined, timeout: number): Promise<ReleaseResult> {
    const command =
      next === undefined
        ? new Command(claim, 'r', '', readRelease)
        : new Command(claim, 'r', `${next.id} ${terms(next)}`, (reply) => readReleaseAndNext(reply, next.tokens))
    const answer = await this.commands.send(command, timeout)
    if (!('kind' in answer)) return answer
    return next === undefined ? { released: answer } : { released: answer, next: answer }
  }

  withdraw(claim: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    return this.commands.send(new Command(claim, 'w', '', readReleased), timeout)
  }

  watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    return this.watching.watch(session, listener, timeout)
  }

  inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    const args = ['3', ...keysOf(this.prefix, name)]
    return this.requests.ask(async () => readName(name, await runScript(this.link, scripts.inspect, args)), timeout)
  }

  list(query: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    throw new Error('x' + query + timeout)
  }

  async close(): Promise<void> {
    this.watching.close()
    this.requests.close()
    await this.link.close()
  }
}
