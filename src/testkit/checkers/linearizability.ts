import type { Model } from './models.ts'
import type { Operation } from './operation.ts'
import { byName } from './violation.ts'
import type { Violation } from './violation.ts'

export interface LinearizabilityResult {
  /** `unknown`: the search was given up. Never the same as `held`. */
  readonly verdict: 'held' | 'broke' | 'unknown'
  readonly violations: readonly Violation[]
  readonly steps: number
}

export interface LinearizabilityOptions {
  /** How many steps a name may cost before the search is given up. */
  readonly limit?: number | undefined
}

const LIMIT = 1_000_000

/**
 * Whether some order of the calls, each at one moment between its beginning and its end, is one that the model allows. The
 * search of Wing and Gong with Lowe's memory: from the earliest call on, take whatever the model allows; where a call
 * has ended and could not be placed, undo the last choice; never look twice at the same set of placed calls in
 * the same state.
 */
export function checkLinearizability<S>(
  operations: readonly Operation[],
  model: Model<S>,
  { limit = LIMIT }: LinearizabilityOptions = {},
): LinearizabilityResult {
  const results = [...byName(operations)].map(([name, group]) => new Search(name, group, model, limit).run())
  const violations = results.flatMap((result) => result.violations)
  const undecided = results.some(({ verdict }) => verdict === 'unknown')
  const steps = results.reduce((sum, result) => sum + result.steps, 0)
  return { verdict: violations.length > 0 ? 'broke' : undecided ? 'unknown' : 'held', violations, steps }
}

/** The beginning or the end of a call, in a list from which placed calls are lifted. */
interface Entry {
  readonly index: number
  readonly operation: Operation
  readonly at: bigint
  /** A beginning's end; undefined also where the call never ended. */
  readonly end: Entry | undefined
  readonly begins: boolean
  before: Entry | undefined
  after: Entry | undefined
}

interface Choice<S> {
  readonly entry: Entry
  readonly state: S
  readonly placed: Placed
}

/** Which calls are placed: all of the first ones, and some of the few behind them. A run of hours has a hundred thousand. */
interface Placed {
  readonly first: number
  /** A bit for each call from that on. */
  readonly more: bigint
}

function withOne({ first, more }: Placed, index: number): Placed {
  let [from, bits] = [first, more | (1n << BigInt(index - first))]
  for (; (bits & 1n) === 1n; bits >>= 1n) from += 1
  return { first: from, more: bits }
}

class Search<S> {
  private readonly name: string
  private readonly model: Model<S>
  private readonly limit: number
  private readonly head: Entry
  private readonly seen = new Set<string>()
  private readonly choices: Choice<S>[] = []
  /** Calls that ended and are not placed yet. */
  private open: number
  private most = -1
  private stuck: Operation | undefined

  constructor(name: string, operations: readonly Operation[], model: Model<S>, limit: number) {
    this.name = name
    this.model = model
    this.limit = limit
    this.open = operations.filter(({ end }) => end !== undefined).length
    this.head = linked(operations)
  }

  run(): LinearizabilityResult {
    const { model, head } = this
    let { initial: state } = model
    let placed: Placed = { first: 0, more: 0n }
    let steps = 0
    let entry = head.after
    while (this.open > 0 && entry !== undefined) {
      if (++steps > this.limit) return { verdict: 'unknown', violations: [], steps }
      if (!entry.begins) {
        this.rememberWhere(entry.operation)
        const last = this.choices.pop()
        if (last === undefined) return { verdict: 'broke', violations: [this.violation()], steps }
        this.putBack(last.entry)
        ;({ state, placed } = last)
        entry = last.entry.after
        continue
      }
      const next = model.step(state, entry.operation)
      const now = withOne(placed, entry.index)
      if (next === null || !this.isNew(now, next)) {
        entry = entry.after
        continue
      }
      this.choices.push({ entry, state, placed })
      this.lift(entry)
      state = next
      placed = now
      entry = head.after
    }
    return { verdict: 'held', violations: [], steps }
  }

  private isNew({ first, more }: Placed, state: S): boolean {
    const key = `${first} ${more.toString(36)} ${this.model.key(state)}`
    if (this.seen.has(key)) return false
    this.seen.add(key)
    return true
  }

  private lift({ before, after, end }: Entry): void {
    unlink(before, after)
    if (end === undefined) return
    unlink(end.before, end.after)
    this.open--
  }

  private putBack(entry: Entry): void {
    const { end } = entry
    if (end !== undefined) {
      relink(end)
      this.open++
    }
    relink(entry)
  }

  private rememberWhere(operation: Operation): void {
    if (this.choices.length <= this.most) return
    this.most = this.choices.length
    this.stuck = operation
  }

  private violation(): Violation {
    const { action, owner, token, call } = this.stuck as Operation
    const message = `no order of the calls makes "${this.name}" a ${this.model.name}: after ${this.most} of them, the ${action} by ${owner} (token ${token}) fits nowhere`
    return { rule: 'linearizability', message, at: call }
  }
}

function linked(operations: readonly Operation[]): Entry {
  const inOrder = [...operations].sort((a, b) => (a.call < b.call ? -1 : a.call > b.call ? 1 : 0))
  const entries = inOrder.flatMap((operation, index) => {
    const common = { index, operation, before: undefined, after: undefined }
    const { call, end: endsAt } = operation
    if (endsAt === undefined) return [{ ...common, at: call, end: undefined, begins: true }]
    const end: Entry = { ...common, at: endsAt, end: undefined, begins: false }
    return [{ ...common, at: call, end, begins: true }, end]
  }) as Entry[]
  // What happens at the same moment may have happened in any order.
  entries.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : Number(b.begins) - Number(a.begins)))
  const head = { begins: true } as Entry
  let last = head
  for (const entry of entries) {
    last.after = entry
    entry.before = last
    last = entry
  }
  return head
}

function unlink(before: Entry | undefined, after: Entry | undefined): void {
  if (before !== undefined) before.after = after
  if (after !== undefined) after.before = before
}

function relink(entry: Entry): void {
  if (entry.before !== undefined) entry.before.after = entry
  if (entry.after !== undefined) entry.after.before = entry
}
