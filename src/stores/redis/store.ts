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
import { keysOf } from './keys.ts'
import type { Link } from './link.ts'
import { Requests } from './requests.ts'
import { scripts } from './scripts.gen.ts'
import { Watching } from './watching.ts'
import { readClaim, readName, readReleaseAndNext, readReleased, readRenewals, renewTerms, terms } from './wire.ts'

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
  private readonly mode: string

  constructor(link: Link, { prefix, capabilities }: RedisStoreParts) {
    this.prefix = prefix
    this.mode = link.cluster ? 'c' : ''
    this.requests = new Requests(link)
    this.watching = new Watching(this.requests, link.keyPrefix + prefix)
    this.capabilities = capabilities
  }

  claim(request: ClaimRequest, timeout: number): Promise<ClaimAnswer> {
    const args = this.args(request.name)
    args.push(request.id, terms(request), request.whenBusy === 'queue' ? 'q' : 't')
    if (this.mode !== '') args.push(this.mode)
    return this.requests.script(scripts.claim, args, timeout, (reply) => readClaim(reply, request.tokens))
  }

  async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const keys: string[] = []
    const args: string[] = [this.mode]
    for (const request of requests) {
      keys.push(...keysOf(this.prefix, request.name))
      args.push(request.id, renewTerms(request))
    }
    const answer = await this.requests.script(scripts.renew, [String(keys.length), ...keys, ...args], timeout, readRenewals)
    return Array.isArray(answer) ? answer : requests.map(() => answer as Unknown)
  }

  async release(claim: ClaimRef, next: ClaimRequest | undefined, timeout: number): Promise<ReleaseResult> {
    const args = this.args(claim.name)
    args.push(claim.id)
    if (next === undefined) {
      if (this.mode !== '') args.push(this.mode)
      return { released: await this.requests.script(scripts.release, args, timeout, readReleased) }
    }
    args.push(this.mode, next.id, terms(next))
    const answer = await this.requests.script(scripts.release, args, timeout, (reply) =>
      readReleaseAndNext(reply, next.tokens),
    )
    return 'kind' in answer ? { released: answer, next: answer } : answer
  }

  withdraw(claim: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    const args = this.args(claim.name)
    args.push(claim.id)
    if (this.mode !== '') args.push(this.mode)
    return this.requests.script(scripts.withdraw, args, timeout, readReleased)
  }

  watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    return this.watching.watch(session, listener, timeout)
  }

  inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    return this.requests.script(scripts.inspect, this.args(name), timeout, (reply) => readName(name, reply))
  }

  list(query: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    throw new Error('x' + query + timeout)
  }

  async close(): Promise<void> {
    this.watching.close()
    this.requests.close()
    await this.requests.link.close()
  }

  private args(name: string): string[] {
    return ['3', ...keysOf(this.prefix, name)]
  }
}
