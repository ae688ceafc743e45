import { step } from '../../core/claim-queue.ts'
import type { AnswerOf, QueueCommand } from '../../core/claim-queue.ts'
import type { Effects } from './client.ts'
import { endedBy, spareExpired } from './ended.ts'
import { load, save } from './row.ts'
import type { Columns, Row } from './row.ts'

export interface Computed<C extends QueueCommand> {
  readonly answers: [AnswerOf[C['kind']], ...AnswerOf[C['kind']][]]
  /** What to write over the row. */
  readonly next: Columns
  readonly effects: Effects
}

/** What core says to commands on a row. `refused`: a step over the same row was, because of what a claim guards there. */
export function compute<C extends QueueCommand>(
  row: Row,
  commands: readonly C[],
  slack: number,
  refused = false,
): Computed<C> {
  const loaded = load(row, slack)
  const now = { ms: row.now / 1000, micros: row.now }
  const spared = spareExpired(loaded, commands, now, refused)
  const outcomes = commands.map((command) => step(loaded.state, command, now))
  spared.restore()
  const [first, ...others] = outcomes.map(({ answer }) => answer)
  if (first === undefined) throw new TypeError('A step needs a command')
  return {
    answers: [first, ...others],
    next: save(loaded, row, slack),
    effects: {
      notices: outcomes.flatMap((outcome) => outcome.notices),
      ended: endedBy(row, loaded, commands),
    },
  }
}
