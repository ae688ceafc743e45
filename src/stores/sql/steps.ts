import { backOff } from '../../core/back-off.ts'
import type { AnswerOf, QueueCommand } from '../../core/claim-queue.ts'
import type { ClaimRef, Unknown } from '../../core/contract.ts'
import { answerOfNothing, isComplete, saysGone } from './answers.ts'
import type { Calls } from './calls.ts'
import { DatabaseError, isRefusal } from './failure.ts'
import type { Call, Statements } from './client.ts'
import { isGuarding } from './guarding-claims.ts'
import type { Entry, Lines, Outcome } from './lines.ts'
import { sameColumns } from './row.ts'
import type { Row } from './row.ts'
import { compute } from './step.ts'

// Taken once: a user's fake timers must not reach locks.
const { setTimeout } = globalThis

/** The longest pause after a step that others were faster than. Two hundred at once must not keep each other from all steps. */
const PAUSE_MS = { first: 1, longest: 256 }
const MANY = 3
const CROWDED = new DatabaseError(
  'The server answers, but too many change this name at once, and others were faster each time. Wait for longer than a ' +
    'second, or have fewer wait',
  'CROWDED',
)

/** Some of several commands end claims of which a transaction guards one: they wait for it, and the others do not. */
class EndsGuarded extends Error {
  readonly ids: readonly string[]

  constructor(ids: readonly string[]) {
    super('A transaction is guarded by the claim')
    this.ids = ids
  }
}

const claimOf = (command: QueueCommand): ClaimRef => ('request' in command ? command.request : command.claim)

/** No claim has this id: to give it up changes nothing but what has run out. */
export const NOBODY = 'nobody'

export interface StepsParts<Connection> {
  readonly calls: Calls<Connection>
  readonly statements: Pick<Statements<Connection>, 'read' | 'swap' | 'create' | 'free'>
  readonly lines?: Lines | undefined
  /** How much longer than its patience a waiter is kept. */
  readonly slack: () => number
}

/** Commands of the claim queue, done on the row of their name. */
export class Steps<Connection> {
  private readonly parts: StepsParts<Connection>

  constructor(parts: StepsParts<Connection>) {
    this.parts = parts
  }

  /** Sends a command, together with others on its name if it has to wait for them; else as `alone` says. */
  send<C extends QueueCommand>(
    command: C,
    timeout: number,
    alone: (connection: Connection, call: Call) => Promise<AnswerOf[C['kind']]>,
    done: (answer: AnswerOf[C['kind']], call: Call) => void,
  ): Promise<AnswerOf[C['kind']] | Unknown> {
    const { calls } = this.parts
    const { name, id } = claimOf(command)
    // A claim that guards is not to be ended before its transaction, and nobody else is to wait for that.
    const lines = isGuarding(id) ? undefined : this.parts.lines
    const lead = (call: Call, entries: readonly Entry[]): Promise<readonly Outcome[]> =>
      calls.lend(call, async (connection) =>
        entries.length === 1
          ? [{ answer: await alone(connection, call) }]
          : this.together(connection, name, entries),
      )
    return calls.within(timeout, async (call) => {
      const apart = (): Promise<AnswerOf[C['kind']]> =>
        calls.lend(call, (connection) => alone(connection, call))
      const answer = await (lines === undefined
        ? apart()
        : lines
            .send(name, { command, call }, (entries) => lead(call, entries))
            .catch((error: unknown) => {
              if (error instanceof EndsGuarded) return apart()
              throw error
            }))
      done(answer as AnswerOf[C['kind']], call)
      return answer as AnswerOf[C['kind']]
    })
  }

  private async together(
    connection: Connection,
    name: string,
    entries: readonly Entry[],
  ): Promise<readonly Outcome[]> {
    const send = async (some: readonly Entry[]): Promise<readonly Outcome[]> => {
      const commands = some.map(({ command }) => command)
      const answers = await this.step(connection, name, commands, { calls: some.map(({ call }) => call) })
      return answers.map((answer) => ({ answer }))
    }
    try {
      return await send(entries)
    } catch (error) {
      if (error instanceof EndsGuarded) return this.besides(connection, name, entries, error)
      if (!isRefusal(error)) throw error
    }
    // It may be because of one of them, which is nothing to the others.
    const outcomes: Outcome[] = []
    for (const entry of entries) {
      outcomes.push(...(await send([entry]).catch((error: unknown) => [{ error }])))
    }
    return outcomes
  }

  /** What became of those who end nothing that is guarded. */
  private async besides(
    connection: Connection,
    name: string,
    entries: readonly Entry[],
    error: EndsGuarded,
  ): Promise<readonly Outcome[]> {
    const others = entries.filter(({ command }) => !error.ids.includes(claimOf(command).id))
    const outcomes = others.length === 0 ? [] : await this.together(connection, name, others)
    return entries.map((entry) => outcomes[others.indexOf(entry)] ?? { error })
  }

  /** Reads the row, does what core says, and writes it over what was read; again if somebody was faster. */
  async step<C extends QueueCommand>(
    connection: Connection,
    name: string,
    commands: readonly C[],
    known: { readonly row?: Row | undefined; readonly calls?: readonly Call[] } = {},
  ): Promise<[AnswerOf[C['kind']], ...AnswerOf[C['kind']][]]> {
    const { statements } = this.parts
    let refused = -1
    for (let attempt = 0, { row } = known; ; attempt++, row = undefined) {
      row ??= (await statements.read(connection, [name]))[0]
      if (row === undefined) {
        const absent = commands.map((command) => answerOfNothing(command))
        if (isComplete(absent))
          return this.vouched(connection, name, absent as [AnswerOf[C['kind']], ...AnswerOf[C['kind']][]])
        await statements.create(connection, name)
        continue
      }
      // Nothing has changed since it was refused: a claim that is over guards a transaction, and stands until its end.
      const beside = refused === row.version
      const { answers, next, effects } = compute(row, commands, this.parts.slack(), beside)
      if (beside && effects.ended.length > 0 && commands.length > 1) throw new EndsGuarded(effects.ended)
      if (sameColumns(row, next)) return this.vouched(connection, name, answers)
      if (await statements.swap(connection, row, next, effects)) return answers
      if (effects.ended.length > 0) refused = row.version
      // Somebody else got on, so there is progress; who loses often waits longer, and not in step with the others.
      if (attempt > MANY) for (const call of known.calls ?? []) call.obstacle = CROWDED
      if (attempt > 0)
        await new Promise((resolve) => setTimeout(resolve, Math.random() * backOff(attempt, PAUSE_MS)))
    }
  }

  /**
   * Answers that were only read. After a failover a connection may lead to the old server still, where nobody has heard of
   * claims that came later: that one is gone is said only where something could be written.
   */
  private async vouched<A extends AnswerOf[QueueCommand['kind']]>(
    connection: Connection,
    name: string,
    answers: [A, ...A[]],
  ): Promise<[A, ...A[]]> {
    if (answers.some(saysGone)) await this.parts.statements.free(connection, { name, id: NOBODY })
    return answers
  }
}
