import { printable } from '../../core/printing.ts'
import { view } from '../../core/claim-queue.ts'
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
import { bothUnknown, groupByName, heldAlone, NO_ANSWER, RELEASED, saysGone } from './answers.ts'
import { Calls } from './calls.ts'
import type { CallParts } from './calls.ts'
import type { AtOnce, Call, Sign } from './client.ts'
import { guardsNoMore, isGuarding } from './guarding-claims.ts'
import type { Lines } from './lines.ts'
import { isSign, load, sameColumns } from './row.ts'
import type { Row } from './row.ts'
import { compute } from './step.ts'
import { NOBODY, Steps } from './steps.ts'
import { checkIdle, Tidying } from './tidy.ts'
import type { Tidied, TidyOptions, TidyTools } from './tidy.ts'

export interface SqlStoreParts<Connection> extends CallParts<Connection> {
  readonly kind: string
  readonly capabilities: Capabilities
  /** Tried first, when there is one. */
  readonly atOnce?: AtOnce
  /** Without it, waiters poll. */
  readonly watch?: (session: string, listener: StoreListener, call: Call) => Promise<Watch>
  /** How much longer than its patience a waiter is kept; see `load`. Only for waiters that poll. */
  readonly slack?: number
  /** Where commands on one name wait for each other; without it, none does. */
  readonly lines?: Lines
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

const renewals = (
  group: readonly RenewRequest[],
): { readonly kind: 'renew'; readonly request: RenewRequest }[] =>
  group.map((request) => ({ kind: 'renew', request }))

/** Milliseconds. An answer that took longer is not given at once: whoever hears it should look at the clock again. */
const MOMENT_MS = 1

// Taken once: a user's fake timers must not make time stand still here.
const { performance } = globalThis

/** The claim queue of core, one row per name, at a database. */
export class SqlStore<Connection> implements Store {
  readonly kind: string
  protected readonly parts: SqlStoreParts<Connection>
  /** Claims that were last seen in line. A hint for which statement to try first, nothing more. */
  private readonly waiting = new Set<string>()
  private readonly calls: Calls<Connection>
  private readonly steps: Steps<Connection>
  private readonly tidying: Tidying<Connection>
  private readonly keepIdle: number

  constructor(parts: SqlStoreParts<Connection>) {
    this.kind = parts.kind
    this.parts = parts
    this.calls = new Calls(parts)
    this.steps = new Steps({ ...parts, calls: this.calls, slack: () => this.slack })
    this.keepIdle = checkIdle('keepIdle', parts.keepIdle)
    const tools: TidyTools<Connection> = {
      kind: parts.kind,
      statements: parts.statements,
      slack: () => this.slack,
      call: (timeout, work) => this.call(timeout, work),
      settle: (connection, row) =>
        this.steps.step(connection, row.name, [{ kind: 'release', claim: { name: row.name, id: NOBODY } }], {
          row,
        }),
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
    const command = { kind: 'claim', request } as const
    const alone = async (connection: Connection, call: Call): Promise<ClaimAnswer> => {
      let row: Row | undefined
      if (simple) {
        const taken = await statements.take(connection, request)
        if (taken.created) this.tidying.madeRow(request.name)
        if (taken.token !== undefined) return heldAlone(taken.token, request)
        row = taken.row
      }
      const [answer] = await this.steps.step(connection, request.name, [command], { row, calls: [call] })
      return answer
    }
    return this.steps.send(command, timeout, alone, (answer, call) => this.note(request.id, answer, call))
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
    const [first, ...more] = requests
    if (first !== undefined && more.length === 0 && this.waiting.has(first.id)) {
      return [await this.look(first, timeout)]
    }
    const answers = new Map<string, RenewAnswer>()
    const inLine = new Set(requests.map(({ id }) => id).filter((id) => this.waiting.has(id)))
    const renewing = async (connection: Connection, call: Call): Promise<undefined> => {
      await this.keepAll(connection, requests, answers)
      const others = requests.filter(({ id }) => !answers.has(id))
      await this.askAll(connection, others, answers, (id, answer) => {
        // One that was given up meanwhile stays out: the answer may be older than that, and nothing would take it out again.
        if (!inLine.has(id) || this.waiting.has(id)) this.note(id, answer, call)
      })
    }
    const failure = await this.calls.withLink(timeout, renewing, inLine.size < requests.length)
    return requests.map(({ id }) => answers.get(id) ?? failure ?? NO_ANSWER)
  }

  /** For one that waits. Whoever polls the same name, for the first time or again, shares the look with it. */
  private look(request: RenewRequest, timeout: number): Promise<RenewAnswer> {
    const command = { kind: 'renew', request } as const
    const alone = async (connection: Connection, call: Call): Promise<RenewAnswer> => {
      const [answer] = await this.steps.step(connection, request.name, [command], { calls: [call] })
      return answer
    }
    return this.steps.send(command, timeout, alone, (answer, call) => {
      if (this.waiting.has(request.id)) this.note(request.id, answer, call)
    })
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
    const command = { kind: 'release', claim, next } as const
    const alone = async (connection: Connection, call: Call): Promise<ReleaseResult> => {
      if (simple && (await statements.free(connection, claim))) return RELEASED
      const [result] = await this.steps.step(connection, claim.name, [command], { calls: [call] })
      return result
    }
    const answer = this.steps.send(command, timeout, alone, (result, call) => {
      if (next !== undefined && result.next !== undefined) this.note(next.id, result.next, call)
      guardsNoMore(claim.id)
    })
    return answer.then((result) => ('kind' in result ? bothUnknown(result, next) : result))
  }

  withdraw(claim: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    const command = { kind: 'withdraw', claim } as const
    this.waiting.delete(claim.id)
    const alone = async (connection: Connection, call: Call): Promise<ReleaseAnswer> => {
      const [answer] = await this.steps.step(connection, claim.name, [command], { calls: [call] })
      return answer
    }
    return this.steps.send(command, timeout, alone, () => guardsNoMore(claim.id))
  }

  downgrade(claim: ClaimRef, timeout: number): Promise<DowngradeAnswer> {
    return this.call(timeout, async (connection) => {
      const [answer] = await this.steps.step(connection, claim.name, [{ kind: 'downgrade', claim }])
      return answer
    })
  }

  watch(session: string, listener: StoreListener, timeout: number): Watch | Promise<Watch | Unknown> {
    const { watch } = this.parts
    if (watch === undefined) return { kind: 'watching', stop: () => {} }
    return this.calls.within(timeout, (call) => watch(session, listener, call))
  }

  inspect(name: string, timeout: number): Promise<NameInfo | Unknown> {
    return this.call(timeout, async (connection) => {
      const [row] = await this.parts.statements.read(connection, [name])
      return row === undefined ? { name, capacity: 0, holders: [], waiters: [] } : this.viewOf(row)
    })
  }

  list({ prefix = '', limit = 100, cursor = '' }: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    return this.call(timeout, async (connection) => {
      const names: string[] = []
      for (let after = cursor; ;) {
        const rows = await this.parts.statements.list(connection, prefix, after, limit + 1)
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
    connection: Connection,
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
      const kept = await this.parts.statements.keep(connection, group, ttl)
      for (const [id, contended] of kept) answers.set(id, { kind: 'renewed', contended })
    }
  }

  /** Everybody else: waiters, readers and permits beside others, and holders that want tokens. */
  private async askAll(
    connection: Connection,
    requests: readonly RenewRequest[],
    answers: Map<string, RenewAnswer>,
    note: (id: string, answer: RenewAnswer) => void,
  ): Promise<void> {
    if (requests.length === 0) return
    const byName = groupByName(requests)
    const answer = (group: readonly RenewRequest[], found: readonly RenewAnswer[]): void =>
      group.forEach(({ id }, index) => {
        const one = found[index] ?? NO_ANSWER
        note(id, one)
        answers.set(id, one)
      })
    const rowOf = await this.giveSigns(connection, byName, answer)
    for (const [name, group] of byName)
      answer(group, await this.steps.step(connection, name, renewals(group), { row: rowOf.get(name) }))
  }

  /**
   * Answers those who only show that they are there, and writes that for many names at once. Returns the rows of the others,
   * where they are known.
   */
  private async giveSigns(
    connection: Connection,
    byName: Map<string, readonly RenewRequest[]>,
    answer: (group: readonly RenewRequest[], found: readonly RenewAnswer[]) => void,
  ): Promise<ReadonlyMap<string, Row>> {
    const { statements } = this.parts
    for (let attempt = 0; ; attempt++) {
      const rows = await statements.read(connection, [...byName.keys()])
      const signs: (Sign & { readonly done: () => void })[] = []
      for (const row of rows) {
        const group = byName.get(row.name) ?? []
        const { answers, next, effects } = compute(row, renewals(group), this.slack)
        const done = (): void => {
          answer(group, answers)
          byName.delete(row.name)
        }
        if (sameColumns(row, next)) {
          if (!answers.some(saysGone)) done()
        } else if (isSign(row, next, effects)) signs.push({ row, next, done })
      }
      if (statements.swapQueues === undefined || signs.length < 2 || attempt === SIGN_ATTEMPTS) {
        return new Map(rows.map((row) => [row.name, row]))
      }
      for (let from = 0; from < signs.length; from += SIGNS_AT_ONCE) {
        const some = signs.slice(from, from + SIGNS_AT_ONCE)
        // If somebody was faster with one of them, nobody knows with which: all are looked at again.
        if ((await statements.swapQueues(connection, some)) === some.length)
          some.forEach(({ done }) => done())
      }
      if (byName.size === 0) return new Map()
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

  private note(id: string, { kind }: ClaimAnswer | RenewAnswer, { expired }: Call): void {
    // Nobody hears an answer that is late: the claim may have been withdrawn since, and nothing would take it out again.
    if (kind === 'queued' && !expired) this.waiting.add(id)
    else if (kind !== 'unknown') this.waiting.delete(id)
  }

  /** Whether it is known where the table is; if not, that is found out now. */
  protected async located(timeout: number): Promise<void> {
    if (!this.calls.open) await this.reach(timeout)
  }

  protected call<T>(
    timeout: number,
    work: (connection: Connection, call: Call) => Promise<T>,
  ): Promise<T | Unknown> {
    return this.calls.withLink(timeout, work)
  }
}

// Not its client, its password or the ids of claims.
printable(SqlStore, 'Store', ({ kind }) => ({ kind }))
