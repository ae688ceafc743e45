import { printable } from '../../core/printing.ts'
import { view } from '../../core/claim-queue.ts'
import type { AnswerOf, QueueCommand } from '../../core/claim-queue.ts'
import type {
  Capabilities,
  ClaimAnswer,
  ClaimRef,
  ClaimRequest,
  DowngradeAnswer,
  ListPage,
  ListQuery,
  MaybePromise,
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
import {
  answerOfNothing,
  bothUnknown,
  groupByName,
  heldAlone,
  isComplete,
  NO_ANSWER,
  RELEASED,
} from './answers.ts'
import { Calls } from './calls.ts'
import type { CallParts } from './calls.ts'
import { DatabaseError } from './causes.ts'
import type { AtOnce, Call, Sign } from './client.ts'
import { guardsNoMore, isGuarding } from './guarding-claims.ts'
import { isSign, load, sameColumns } from './row.ts'
import type { Row } from './row.ts'
import { compute } from './step.ts'
import { checkIdle, Tidying } from './tidy.ts'
import type { Tidied, TidyOptions, TidyTools } from './tidy.ts'

export interface SqlStoreParts<Link> extends CallParts<Link> {
  readonly kind: string
  readonly capabilities: Capabilities
  /** Tried first, when there is one. */
  readonly atOnce?: AtOnce
  /** Without it, waiters poll. */
  readonly watch?: (session: string, listener: StoreListener, call: Call) => Promise<Watch>
  /** How much longer than its patience a waiter is kept; see `load`. Only for waiters that poll. */
  readonly slack?: number
  /** Milliseconds after its last grant for which an unused name is remembered. */
  readonly keepIdle?: number
}

/**
 * While waiters poll, they may be kept a quarter longer than they ask for, and so write only every fourth part of their
 * patience. Not so with push: a grant that is pushed counts from the last answer "queued", so that answer has to be
 * ordered before the grant, and only a write is.
 */
const POLL_SLACK = 1.25

/** How many names a statement writes signs of life to, and how often that is tried while others write to them, too. */
const SIGNS_AT_ONCE = 50
const SIGN_ATTEMPTS = 3

/** The longest pause after a step that others were faster than. Two hundred at once must not keep each other from all steps. */
const PAUSE_MS = 256
const MANY = 3
const CROWDED = new DatabaseError(
  'The server answers, but too many change this name at once, and others were faster each time. Wait for longer than a ' +
    'second, or have fewer wait',
  'CROWDED',
)

const renewals = (
  group: readonly RenewRequest[],
): { readonly kind: 'renew'; readonly request: RenewRequest }[] =>
  group.map((request) => ({ kind: 'renew', request }))

/** No claim has this id: to give it up changes nothing but what has run out. */
const NOBODY = 'nobody'

/** Milliseconds. An answer that took longer is not given at once: whoever hears it should look at the clock again. */
const MOMENT_MS = 1

// Taken once: a user's fake timers must not make time stand still here.
const { performance } = globalThis

/** The claim queue of core, one row per name, at a database. */
export class SqlStore<Link> implements Store {
  readonly kind: string
  protected readonly parts: SqlStoreParts<Link>
  /** Claims that were last seen in line. A hint for which statement to try first, nothing more. */
  private readonly waiting = new Set<string>()
  private readonly calls: Calls<Link>
  private readonly tidying: Tidying<Link>
  private readonly keepIdle: number

  constructor(parts: SqlStoreParts<Link>) {
    this.kind = parts.kind
    this.parts = parts
    this.calls = new Calls(parts)
    this.keepIdle = checkIdle('keepIdle', parts.keepIdle)
    const tools: TidyTools<Link> = {
      kind: parts.kind,
      statements: parts.statements,
      slack: () => this.slack,
      call: (timeout, work) => this.call(timeout, work),
      settle: (link, row) =>
        this.step(link, row.name, [{ kind: 'release', claim: { name: row.name, id: NOBODY } }], { row }),
    }
    this.tidying = new Tidying(tools, this.keepIdle)
  }

  get capabilities(): Capabilities {
    return this.parts.capabilities
  }

  claim(request: ClaimRequest, timeout: number): MaybePromise<ClaimAnswer> {
    const { statements } = this.parts
    const simple = !this.waiting.has(request.id) && request.weight <= request.capacity
    const atOnce = simple ? this.takeAtOnce(request) : undefined
    if (atOnce !== undefined) return atOnce
    return this.call(timeout, async (link, call) => {
      let row: Row | undefined
      if (simple) {
        const taken = await statements.take(link, request)
        if (taken.created) this.tidying.madeRow(request.name)
        if (taken.token !== undefined) return heldAlone(taken.token, request)
        row = taken.row
      }
      const [answer] = await this.step(link, request.name, [{ kind: 'claim', request }], { row, call })
      this.note(request.id, answer)
      return answer
    })
  }

  private takeAtOnce(request: ClaimRequest): MaybePromise<ClaimAnswer> | undefined {
    const { atOnce } = this.parts
    if (atOnce === undefined || !this.calls.open) return undefined
    const began = performance.now()
    const token = atOnce.take(request)
    if (token === undefined) return undefined
    const held = heldAlone(token, request)
    return performance.now() - began < MOMENT_MS ? held : Promise.resolve(held)
  }

  async renew(requests: readonly RenewRequest[], timeout: number): Promise<readonly RenewAnswer[]> {
    const answers = new Map<string, RenewAnswer>()
    const held = requests.some(({ id }) => !this.waiting.has(id))
    const renewing = async (link: Link): Promise<undefined> => {
      await this.keepAll(link, requests, answers)
      const others = requests.filter(({ id }) => !answers.has(id))
      await this.askAll(link, others, answers)
    }
    const failure = await this.calls.withLink(timeout, renewing, held)
    return requests.map(({ id }) => answers.get(id) ?? failure ?? NO_ANSWER)
  }

  guards(claimId: string): boolean {
    return isGuarding(claimId)
  }

  release(claim: ClaimRef, next: ClaimRequest | undefined, timeout: number): MaybePromise<ReleaseResult> {
    const { atOnce, statements } = this.parts
    // A claim that asks for its successor, or that waits, is not alone there: no use trying.
    let simple = next === undefined && !this.waiting.delete(claim.id) && !isGuarding(claim.id)
    if (simple && atOnce !== undefined && this.calls.open) {
      if (atOnce.free(claim)) return RELEASED
      simple = false
    }
    const answer = this.call<ReleaseResult>(timeout, async (link, call) => {
      if (simple && (await statements.free(link, claim))) return RELEASED
      const [result] = await this.step(link, claim.name, [{ kind: 'release', claim, next }], { call })
      if (next !== undefined && result.next !== undefined) this.note(next.id, result.next)
      guardsNoMore(claim.id)
      return result
    })
    return answer.then((result) => ('kind' in result ? bothUnknown(result, next) : result))
  }

  withdraw(claim: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    return this.call(timeout, async (link, call) => {
      this.waiting.delete(claim.id)
      const [answer] = await this.step(link, claim.name, [{ kind: 'withdraw', claim }], { call })
      guardsNoMore(claim.id)
      return answer
    })
  }

  downgrade(claim: ClaimRef, timeout: number): Promise<DowngradeAnswer> {
    return this.call(timeout, async (link) => {
      const [answer] = await this.step(link, claim.name, [{ kind: 'downgrade', claim }])
      return answer
    })
  }

  watch(session: string, listener: StoreListener, timeout: number): Watch | Promise<Watch | Unknown> {
    const { watch } = this.parts
    if (watch === undefined) return { kind: 'watching', stop: () => {} }
    return this.calls.within(timeout, (call) => watch(session, listener, call))
  }

  inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    return this.call(timeout, async (link) => {
      const [row] = await this.parts.statements.read(link, [name])
      return row === undefined ? { name, capacity: 0, holders: [], waiters: [] } : this.viewOf(row)
    })
  }

  list({ prefix = '', limit = 100, cursor = '' }: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    return this.call(timeout, async (link) => {
      const names: string[] = []
      for (let after = cursor; ;) {
        const rows = await this.parts.statements.list(link, prefix, after, limit + 1)
        for (const row of rows) {
          const { holders, waiters } = this.viewOf(row)
          if (holders.length + waiters.length === 0) continue
          if (names.length === limit) return { names, cursor: names.at(-1) ?? '' }
          names.push(row.name)
        }
        const last = rows.at(-1)
        if (last === undefined || rows.length <= limit) return { names }
        after = last.name
      }
    })
  }

  /** Forgets names that nobody has used for long, a few at a time. */
  async tidy({ idle = this.keepIdle }: TidyOptions = {}): Promise<Tidied> {
    return this.tidying.all(checkIdle('idle', idle))
  }

  /** Whether the server answers and has the table, or may make it. */
  reach(timeout: number): Promise<Unknown | undefined> {
    return this.call(timeout, () => Promise.resolve(undefined))
  }

  close(): Promise<void> {
    return this.calls.close()
  }

  /** One statement for all that were held when last seen, and have not been asked to give tokens. */
  private async keepAll(
    link: Link,
    requests: readonly RenewRequest[],
    answers: Map<string, RenewAnswer>,
  ): Promise<void> {
    const groups = new Map<number, RenewRequest[]>()
    for (const request of requests) {
      if (request.tokens > 0 || this.waiting.has(request.id)) continue
      const group = groups.get(request.ttl)
      if (group === undefined) groups.set(request.ttl, [request])
      else group.push(request)
    }
    for (const [ttl, group] of groups) {
      const kept = await this.parts.statements.keep(link, group, ttl)
      for (const [id, contended] of kept) answers.set(id, { kind: 'renewed', contended })
    }
  }

  /** Everybody else: waiters, readers and permits beside others, and holders that want tokens. */
  private async askAll(
    link: Link,
    requests: readonly RenewRequest[],
    answers: Map<string, RenewAnswer>,
  ): Promise<void> {
    if (requests.length === 0) return
    const byName = groupByName(requests)
    const answer = (group: readonly RenewRequest[], found: readonly RenewAnswer[]): void =>
      group.forEach(({ id }, index) => {
        const one = found[index] ?? NO_ANSWER
        this.note(id, one)
        answers.set(id, one)
      })
    const rowOf = await this.giveSigns(link, byName, answer)
    for (const [name, group] of byName)
      answer(group, await this.step(link, name, renewals(group), { row: rowOf.get(name) }))
  }

  /**
   * Answers those who only show that they are there, and writes that for many names at once. Returns the rows of the others,
   * where they are known.
   */
  private async giveSigns(
    link: Link,
    byName: Map<string, readonly RenewRequest[]>,
    answer: (group: readonly RenewRequest[], found: readonly RenewAnswer[]) => void,
  ): Promise<ReadonlyMap<string, Row>> {
    const { statements } = this.parts
    for (let attempt = 0; ; attempt++) {
      const rows = await statements.read(link, [...byName.keys()])
      const signs: (Sign & { readonly done: () => void })[] = []
      for (const row of rows) {
        const group = byName.get(row.name) ?? []
        const { answers, next, effects } = compute(row, renewals(group), this.slack)
        const done = (): void => {
          answer(group, answers)
          byName.delete(row.name)
        }
        if (sameColumns(row, next)) done()
        else if (isSign(row, next, effects)) signs.push({ row, next, done })
      }
      if (statements.swapQueues === undefined || signs.length < 2 || attempt === SIGN_ATTEMPTS) {
        return new Map(rows.map((row) => [row.name, row]))
      }
      for (let from = 0; from < signs.length; from += SIGNS_AT_ONCE) {
        const some = signs.slice(from, from + SIGNS_AT_ONCE)
        // If somebody was faster with one of them, nobody knows with which: all are looked at again.
        if ((await statements.swapQueues(link, some)) === some.length) some.forEach(({ done }) => done())
      }
      if (byName.size === 0) return new Map()
    }
  }

  /** Reads the row, does what core says, and writes it over what was read; again if somebody was faster. */
  private async step<C extends QueueCommand>(
    link: Link,
    name: string,
    commands: readonly C[],
    known: { readonly row?: Row | undefined; readonly call?: Call } = {},
  ): Promise<[AnswerOf[C['kind']], ...AnswerOf[C['kind']][]]> {
    const { statements } = this.parts
    let refused = -1
    for (let attempt = 0, { row } = known; ; attempt++, row = undefined) {
      row ??= (await statements.read(link, [name]))[0]
      if (row === undefined) {
        const absent = commands.map((command) => answerOfNothing(command))
        if (isComplete(absent)) return absent as [AnswerOf[C['kind']], ...AnswerOf[C['kind']][]]
        await statements.create(link, name)
        continue
      }
      // Nothing has changed since it was refused: a claim that is over guards a transaction, and stands until its end.
      const { answers, next, effects } = compute(row, commands, this.slack, refused === row.version)
      if (sameColumns(row, next) || (await statements.swap(link, row, next, effects))) return answers
      if (effects.ended.length > 0) refused = row.version
      // Somebody else got on, so there is progress; who loses often waits longer, and not in step with the others.
      if (attempt > MANY && known.call !== undefined) known.call.obstacle = CROWDED
      if (attempt > 0)
        await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(2 ** attempt, PAUSE_MS)))
    }
  }

  private get slack(): number {
    return this.capabilities.wakeups === 'push' ? 1 : (this.parts.slack ?? POLL_SLACK)
  }

  private viewOf(row: Row): NameInfo {
    const { state } = load(row, this.slack)
    const info = view(state, row.name, { ms: row.now / 1000, micros: row.now })
    // Nobody was promised more than their patience.
    const waiters = info.waiters.map((waiter) => {
      const patience = state.waiters.get(waiter.id)?.patience ?? 0
      return { ...waiter, expiresIn: Math.min(waiter.expiresIn, patience) }
    })
    return { ...info, waiters }
  }

  private note(id: string, { kind }: ClaimAnswer | RenewAnswer): void {
    if (kind === 'queued') this.waiting.add(id)
    else if (kind !== 'unknown') this.waiting.delete(id)
  }

  /** Whether it is known where the table is; if not, that is found out now. */
  protected async located(timeout: number): Promise<void> {
    if (!this.calls.open) await this.reach(timeout)
  }

  protected call<T>(timeout: number, work: (link: Link, call: Call) => Promise<T>): Promise<T | Unknown> {
    return this.calls.withLink(timeout, work)
  }
}

// Not its client, its password or the ids of claims.
printable(SqlStore, 'Store', ({ kind }) => ({ kind }))
