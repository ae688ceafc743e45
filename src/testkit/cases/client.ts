import assert from 'node:assert/strict'

import type {
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  Held,
  MaybePromise,
  NameInfo,
  ReleaseAnswer,
  ReleaseRequest,
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreEvent,
  Unknown,
} from '../../core/contract.ts'
import type { CaseContext } from '../case.ts'

/** Long enough for a slow machine; no case waits for it to end. */
const TIMEOUT_MS = 10_000
/** A ttl and a patience that do not run out while a case runs. */
const LONG_MS = 60_000

export type RequestOptions = Partial<Omit<ClaimRequest, 'name'>>

/** A store as a session sees it: with claim ids of its own, a watch, and a memory of what it was told. */
export class Client {
  readonly session: string
  readonly store: Store
  readonly events: StoreEvent[] = []
  private readonly ctx: CaseContext
  private made = 0
  stopWatching: () => void = () => undefined

  private constructor(ctx: CaseContext, store: Store, session: string) {
    this.ctx = ctx
    this.store = store
    this.session = session
  }

  /** A client of its own, that listens. */
  static async open(ctx: CaseContext, store?: Store, session: string = ctx.env.randomId()): Promise<Client> {
    const client = new Client(ctx, store ?? (await ctx.createStore()), session)
    const watch = await client.store.watch(client.session, (event) => client.events.push(event), TIMEOUT_MS)
    assert.ok(watch.kind === 'watching', 'the store can be watched')
    client.stopWatching = () => watch.stop()
    ctx.cleanup(() => client.stopWatching())
    return client
  }

  /** A new request: weight 1 of 1, and times that do not run out. Frozen: a store has nothing to write into it. */
  request(name: string, options: RequestOptions = {}): ClaimRequest {
    this.made += 1
    return Object.freeze({
      name,
      id: `${this.session}.${this.made}`,
      weight: 1,
      capacity: 1,
      ttl: this.ctx.ttl(LONG_MS),
      patience: LONG_MS,
      tokens: 1,
      whenBusy: 'queue',
      owner: 'testkit',
      ...options,
    })
  }

  claim(request: ClaimRequest): MaybePromise<ClaimAnswer> {
    return this.store.claim(request, TIMEOUT_MS)
  }

  renewAll(requests: readonly RenewRequest[]): MaybePromise<readonly RenewAnswer[]> {
    return this.store.renew(requests, TIMEOUT_MS)
  }

  async renew(request: RenewRequest, changes: Partial<RenewRequest> = { tokens: 0 }): Promise<RenewAnswer> {
    const [answer] = await this.renewAll(Object.freeze([Object.freeze({ ...request, ...changes })]))
    assert.ok(answer, 'every request is answered')
    return answer
  }

  fuse(claim: ClaimRef, next: ClaimRequest): MaybePromise<ReleaseResult> {
    return this.store.release(claim, next, TIMEOUT_MS)
  }

  async release(claim: ReleaseRequest): Promise<ReleaseAnswer['kind']> {
    const { released } = await this.store.release(claim, undefined, TIMEOUT_MS)
    return released.kind
  }

  async withdraw(claim: ClaimRef): Promise<ReleaseAnswer['kind']> {
    return (await this.store.withdraw(claim, TIMEOUT_MS)).kind
  }

  async downgrade({ name, id }: ClaimRef): Promise<DowngradeAnswer['kind']> {
    assert.ok(this.store.downgrade, 'the store can turn a writer into a reader')
    return (await this.store.downgrade({ name, id }, TIMEOUT_MS)).kind
  }

  async inspect(name: string): Promise<NameInfo> {
    return known(await this.store.inspect(name, TIMEOUT_MS))
  }

  /** All names with the prefix, page by page; something may happen between two of them. */
  async list(
    prefix: string,
    limit?: number,
    between: (shown: readonly string[]) => Promise<void> = async () => {},
  ): Promise<readonly string[]> {
    const names: string[] = []
    let cursor: string | undefined
    do {
      const query = {
        prefix,
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      }
      const page = known(await this.store.list(query, TIMEOUT_MS))
      assert.ok(page.names.length <= (limit ?? 100), 'a page is no longer than its limit')
      names.push(...page.names)
      cursor = page.cursor
      await between(page.names)
    } while (cursor !== undefined)
    return names
  }

  /** Claims, and must get it now. */
  async take(request: ClaimRequest): Promise<Held> {
    const answer = known(await this.claim(request))
    assert.equal(answer.kind, 'held', `${request.name} is granted at once`)
    return answer as Held
  }

  /** Claims, and must be queued. */
  async queue(request: ClaimRequest): Promise<ClaimRequest> {
    const answer = known(await this.claim(request))
    assert.equal(answer.kind, 'queued', `${request.name} is not free, so the claim is queued`)
    return request
  }

  /** Tries, and must hear that it is busy. */
  async findBusy(name: string, options: RequestOptions = {}): Promise<void> {
    const answer = known(await this.claim(this.request(name, { ...options, whenBusy: 'try' })))
    assert.equal(answer.kind, 'busy', `${name} is not free`)
  }

  /** Waits for the grant of a queued claim as a runtime would: told by the store, or asking. Returns its tokens. */
  async granted(request: ClaimRequest, within: number = this.ctx.grace): Promise<Held> {
    return this.ctx.eventually(
      'a waiter is granted',
      async () => {
        const told = this.events.find((event) => event.kind === 'granted' && event.id === request.id)
        if (this.ctx.capabilities.wakeups === 'push' && told === undefined) return undefined
        const answer = await this.renew(request, { tokens: 1 })
        return answer.kind === 'held' ? answer : undefined
      },
      within,
    )
  }

  async holds(claim: ClaimRef): Promise<boolean> {
    const { holders } = await this.inspect(claim.name)
    return holders.some(({ id }) => id === claim.id)
  }

  async waits(claim: ClaimRef): Promise<boolean> {
    const { waiters } = await this.inspect(claim.name)
    return waiters.some(({ id }) => id === claim.id)
  }
}

export async function openClients(ctx: CaseContext): Promise<[Client, Client, Client, Client]> {
  return [await Client.open(ctx), await Client.open(ctx), await Client.open(ctx), await Client.open(ctx)]
}

function known<T>(answer: T | Unknown): T {
  const { kind, cause } = (answer ?? {}) as Partial<Unknown>
  assert.ok(
    kind !== 'unknown',
    `the store answers${cause instanceof Error ? `, and not: ${cause.message}` : ''}`,
  )
  return answer as T
}
