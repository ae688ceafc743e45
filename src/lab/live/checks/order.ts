import { gaveUpOf } from '../../../testkit/checkers/fifo.ts'
import { byName } from '../../../testkit/checkers/violation.ts'
import type { Violation } from '../../../testkit/checkers/violation.ts'
import type { HistoryEvent } from '../../../testkit/history.ts'
import type { Hold } from '../../../testkit/holds.ts'
import type { Evidence, Look } from '../evidence.ts'
import { firstWhere } from '../in-order.ts'

/** Somebody who was seen in line, until it was given the lock or gave up. */
interface Waiter {
  readonly process: string
  readonly op: number
  readonly name: string
  readonly weight: number
  readonly queued: bigint
  readonly until: bigint
  /** Absent: it gave up. */
  readonly token?: bigint
}

/**
 * Who stood in line first was first. Where one excludes the other, their tokens tell which of them was. Of several that one
 * release let in together they do not: each is given new ones when it confirms what it was told. Of these only that counts
 * which the store showed: somebody in line, when a later one already had the lock. Where waiters have to ask, the first to ask is
 * let in beside others that have not yet, and nothing can be said of that.
 */
export function orderOf({ history, looks, settings }: Evidence, holds: readonly Hold[]): Violation[] {
  const { wakeups } = settings.capabilities
  const lines = new Map([...byName(holds)].map(([name, group]) => [name, new Line(group)]))
  const byLooks = byName(
    wakeups === 'push' ? [...looks].sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0)) : [],
  )
  return waitersOf(history, holds).flatMap((waiter) => {
    const { process, op, name, queued, until, token } = waiter
    const seen = lastSeen(waiter, byLooks.get(name) ?? [])
    const line = lines.get(name)
    const before = (line?.after(queued, { from: token === undefined ? until : seen, token }) ?? []).filter(
      (later) => later.from < seen || wentBefore(later, waiter),
    )
    if (before.length === 0) return []
    const end = token === undefined ? ', which gave up' : ` (token ${token})`
    const message = `${before.length} that came later went before ${process}#${op} of "${name}"${end}`
    return [{ rule: 'fifo', message, at: until }]
  })
}

function waitersOf(history: readonly HistoryEvent[], holds: readonly Hold[]): Waiter[] {
  const weights = new Map(
    history.flatMap(({ process, op, kind, phase, weight = 1 }) =>
      kind === 'acquire' && phase === 'invoke' ? [[`${process}\n${op}`, weight]] : [],
    ),
  )
  return [
    ...holds.flatMap(({ process, op, name, weight, queued, from: until, token }) =>
      queued === undefined ? [] : [{ process, op, name, weight, queued, until, token }],
    ),
    ...gaveUpOf(history).map((one) => ({ ...one, weight: weights.get(`${one.process}\n${one.op}`) ?? 1 })),
  ]
}

/** The grants of a name, by when they were asked for. */
class Line {
  private readonly inOrder: readonly Hold[]
  /** Of this grant and all behind it: when the first was given, and the smallest token. */
  private readonly least: { readonly from: bigint; readonly token: bigint }[] = []

  constructor(holds: readonly Hold[]) {
    this.inOrder = [...holds].sort((a, b) => (a.invoked < b.invoked ? -1 : a.invoked > b.invoked ? 1 : 0))
    let least: { readonly from: bigint; readonly token: bigint } | undefined
    for (let index = this.inOrder.length - 1; index >= 0; index -= 1) {
      const { from, token } = this.inOrder[index] as Hold
      least = {
        from: least === undefined || from < least.from ? from : least.from,
        token: least === undefined || token < least.token ? token : least.token,
      }
      this.least[index] = least
    }
  }

  /** Those that were asked for after that, as far as one of them may have been given before that moment or with a smaller token. */
  after(queued: bigint, before: { readonly from: bigint; readonly token: bigint | undefined }): Hold[] {
    const found: Hold[] = []
    const { inOrder, least } = this
    for (let index = firstWhere(inOrder, ({ invoked }) => invoked > queued); ; index += 1) {
      const [hold, rest] = [inOrder[index], least[index]]
      if (hold === undefined || rest === undefined) return found
      if (rest.from >= before.from && rest.token >= (before.token ?? 0n)) return found
      found.push(hold)
    }
  }
}

/** When the store was last asked and showed it in line. Looks are in order. */
function lastSeen({ process, queued, until }: Waiter, looks: readonly Look[]): bigint {
  const [begin, end] = [queued, until].map((time) => firstWhere(looks, ({ from }) => from > time))
  const last = looks.slice(begin, end).findLast(({ to, waiters }) => to <= until && waiters.includes(process))
  return last?.from ?? queued
}

/** Of two that exclude each other. */
function wentBefore(later: Hold, { weight, token, until }: Waiter): boolean {
  if (later.weight + weight <= later.capacity) return false
  return token === undefined ? later.from < until : later.token < token
}
