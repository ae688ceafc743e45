import { platform } from '#platform'

import { printable } from '../../core/printing.ts'
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
  ReleaseResult,
  RenewAnswer,
  RenewRequest,
  Store,
  StoreListener,
  Unknown,
  Watch,
} from '../../core/contract.ts'
import { assumedCapabilities } from './capabilities.ts'
import { Overtaken } from './overtaken.ts'
import {
  claimAnswerOf,
  downgradeAnswerOf,
  eventOf,
  listPageOf,
  nameInfoOf,
  refusalOf,
  releaseAnswerOf,
  releaseResultOf,
  renewAnswersOf,
} from './replies.ts'
import { RENEWALS_PER_LINE } from './wire.ts'
import type { Hello, Operation } from './wire.ts'

/** The way to a lock server: requests with answers, and what it says unasked. */
export interface Connection {
  /** The server's own words of itself, when it has been heard. */
  readonly hello: Hello | null
  readonly connected: boolean
  /** See `Store.listeningIsFree`. */
  readonly listeningIsFree: boolean
  /** How long a list of renewals may be. */
  readonly renewalBytes: number
  /** Never rejects: what went wrong is `unknown`. A request is sent at most once, and not after its time is up. */
  ask(operation: Operation, payload: unknown, timeout: number): Promise<unknown>
  /** Whether somebody waits who was not promised an answer at a certain time. */
  keep(kept: boolean): void
  close(): void
}

export interface ConnectionOwner {
  /** A connection stands: tell the server what it has to know. */
  connected(): void
  /** Whether the connection has to be there although nobody asks anything. */
  listening(): boolean
  told(said: unknown): void
}

interface SessionWatch {
  readonly listener: StoreListener
  /** The server has agreed once: from then on it is kept up. */
  stands: boolean
}

/** The locks of a lock server, whichever way it is spoken to. */
export class ServerStore implements Store {
  readonly kind = 'holdfast'
  /** The server's address, for messages. */
  readonly where: string
  private readonly connection: Connection
  private readonly watches = new Map<string, SessionWatch>()
  /** Claims in line here: while there is one, the process stays. */
  private readonly waiting = new Set<string>()
  private readonly overtaken = new Overtaken()
  /** The connection on which the server was last told what to listen for: another one has another. */
  private hears: object = {}

  constructor(where: string, linkFor: (owner: ConnectionOwner) => Connection) {
    this.where = where
    this.connection = linkFor({
      connected: () => this.watchAgain(),
      listening: () => this.watches.size > 0,
      told: (spoken) => this.told(spoken),
    })
  }

  get listeningIsFree(): boolean {
    return this.connection.listeningIsFree
  }

  /** The server's own, as soon as it has been heard of. */
  get capabilities(): Capabilities {
    return this.connection.hello?.capabilities ?? assumedCapabilities
  }

  async claim(request: ClaimRequest, timeout: number): Promise<ClaimAnswer> {
    const since = this.overtaken.begin(request.id)
    const answer = await this.connection.ask('claim', claimToSend(request), timeout)
    return this.seen(request.id, isUnknown(answer) ? answer : claimAnswerOf(answer), since)
  }

  async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const parts = linesOf(requests, this.connection.renewalBytes).map((part) => this.renewSome(part, timeout))
    return (await Promise.all(parts)).flat()
  }

  async release(claim: ClaimRef, next: ClaimRequest | undefined, timeout: number): Promise<ReleaseResult> {
    const { name, id } = claim
    const payload = next === undefined ? { name, id } : { name, id, next: claimToSend(next) }
    const since = next === undefined ? 0 : this.overtaken.begin(next.id)
    const answer = await this.connection.ask('release', payload, timeout)
    const result: ReleaseResult = !isUnknown(answer)
      ? releaseResultOf(answer, next !== undefined)
      : next === undefined
        ? { released: answer }
        : { released: answer, next: answer }
    if (result.released.kind !== 'unknown') this.givenBack(id)
    if (next !== undefined && result.next !== undefined) this.seen(next.id, result.next, since)
    return result
  }

  async withdraw({ name, id }: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    const answer = await this.connection.ask('withdraw', { name, id }, timeout)
    const released = isUnknown(answer) ? answer : releaseAnswerOf(answer)
    if (released.kind !== 'unknown') this.givenBack(id)
    return released
  }

  /** If the store behind the server has it; who holds a lock has heard of that. */
  get downgrade(): Store['downgrade'] {
    const { hello } = this.connection
    return hello === null || hello.downgrade === true ? this.toReader : undefined
  }

  async watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    const watch: SessionWatch = { listener, stands: false }
    this.watches.set(session, watch)
    const answer = await this.connection.ask('watch', session, timeout)
    const refusal = isUnknown(answer) ? answer : refusalOf(answer)
    if (refusal !== null) {
      if (this.watches.get(session) === watch) this.watches.delete(session)
      return refusal
    }
    watch.stands = true
    return { kind: 'watching', stop: () => this.unwatch(session, watch) }
  }

  async inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    const answer = await this.connection.ask('inspect', name, timeout)
    return isUnknown(answer) ? answer : nameInfoOf(answer)
  }

  async list(query: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    const answer = await this.connection.ask('list', query, timeout)
    return isUnknown(answer) ? answer : listPageOf(answer)
  }

  close(): void {
    this.watches.clear()
    this.connection.close()
  }

  /** Whether the server answers; its hello has been heard then. */
  async reach(timeout: number): Promise<Unknown | null> {
    const answer = await this.connection.ask('ping', null, timeout)
    return isUnknown(answer) ? answer : refusalOf(answer)
  }

  private readonly toReader = async ({ name, id }: ClaimRef, timeout: number): Promise<DowngradeAnswer> => {
    const answer = await this.connection.ask('downgrade', { name, id }, timeout)
    return isUnknown(answer) ? answer : downgradeAnswerOf(answer)
  }

  private async renewSome(
    requests: readonly RenewRequest[],
    timeout: number,
  ): Promise<readonly RenewAnswer[]> {
    // Field by field: what the runtime passes here is more than a request.
    const payload = requests.map(({ name, id, ttl, patience, tokens }) => ({
      name,
      id,
      ttl,
      patience,
      tokens,
    }))
    const asked = requests.map(({ id }) => [id, this.overtaken.begin(id)] as const)
    const answer = await this.connection.ask('renew', payload, timeout)
    const answers = isUnknown(answer) ? requests.map(() => answer) : renewAnswersOf(answer, requests.length)
    asked.forEach(([id, since], index) => {
      const one = answers[index]
      if (one !== undefined) this.seen(id, one, since)
    })
    return answers
  }

  private unwatch(session: string, watch: SessionWatch): void {
    if (this.watches.get(session) !== watch) return
    this.watches.delete(session)
    // Should it get lost, the server notices when the connection ends.
    if (this.connection.connected) this.ignore('unwatch', session)
  }

  private told(said: unknown): void {
    const heard = eventOf(said)
    if (heard === null) return
    const { session, event } = heard
    if ('id' in event && event.kind !== 'contended') this.gone(event.id)
    this.watches.get(session)?.listener(event)
  }

  /** After a reconnect: events may have been missed, and the server has to learn again whom to tell. */
  private watchAgain(): void {
    this.hears = {}
    for (const [session, watch] of this.watches)
      if (watch.stands) this.listenAgain(session, watch, this.hears)
  }

  /**
   * Until the server has agreed, or there is another connection. Its own store may be away just now, or its token's principal
   * have another name, which the next renewal tells: who gave up would not be told of anything for as long as this connection lasts.
   */
  private listenAgain(session: string, watch: SessionWatch, connection: object): void {
    if (this.watches.get(session) !== watch || this.hears !== connection || !this.connection.connected) return
    this.connection.ask('watch', session, WATCH_AGAIN_MS).then(
      (answer) => {
        if (this.watches.get(session) !== watch || this.hears !== connection) return
        if (!isUnknown(answer) && refusalOf(answer) === null) return watch.listener({ kind: 'gap' })
        platform.setTimeout(() => this.listenAgain(session, watch, connection), WATCH_PAUSE_MS).unref()
      },
      () => undefined,
    )
  }

  private ignore(operation: Operation, payload: unknown): void {
    this.connection.ask(operation, payload, WATCH_AGAIN_MS).then(
      () => undefined,
      () => undefined,
    )
  }

  private seen<A extends ClaimAnswer | RenewAnswer>(id: string, answer: A, since: number): A {
    if (!this.overtaken.end(id, since)) return answer
    if (answer.kind === 'queued') {
      this.waiting.add(id)
      this.connection.keep(true)
    } else if (answer.kind !== 'unknown') this.gone(id)
    return answer
  }

  private givenBack(id: string): void {
    this.overtaken.givenBack(id)
    this.gone(id)
  }

  private gone(id: string): void {
    if (this.waiting.delete(id) && this.waiting.size === 0) this.connection.keep(false)
  }
}

const WATCH_AGAIN_MS = 5000
const WATCH_PAUSE_MS = 2000
/** Of a renewal: what stands in a line besides its name and its id. */
const OTHER_BYTES = 120

/** As many as a line or a request may have, by number and by length: one that is too long is not taken. */
function linesOf(requests: readonly RenewRequest[], most: number): readonly (readonly RenewRequest[])[] {
  const lines: RenewRequest[][] = []
  let room = 0
  for (const request of requests) {
    // At the most: a character has three bytes, or two with its backslash. To count them would take longer than to send a line more.
    const bytes = 3 * (request.name.length + request.id.length) + OTHER_BYTES
    const line = lines.at(-1)
    if (line === undefined || line.length === RENEWALS_PER_LINE || bytes > room) {
      lines.push([request])
      room = most - bytes
    } else {
      line.push(request)
      room -= bytes
    }
  }
  return lines
}

function claimToSend(request: ClaimRequest): ClaimRequest {
  const { name, id, weight, capacity, ttl, patience, tokens, whenBusy, owner } = request
  return { name, id, weight, capacity, ttl, patience, tokens, whenBusy, owner }
}

/** It never came to an answer. What comes over the wire has no errors in it. */
function isUnknown(answer: unknown): answer is Unknown {
  return typeof answer === 'object' && answer !== null && (answer as Partial<Unknown>).cause instanceof Error
}

// Not its client, its password or the ids of claims.
printable(ServerStore, 'Store', ({ kind }) => ({ kind }))
