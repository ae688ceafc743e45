import { InvalidArgumentError } from '../../core/errors.ts'
import { outsideTransaction } from './same-transaction.ts'
import { pause } from './user-table.ts'
import type { Changed } from './user-table.ts'

/**
 * Runs one statement on the connection of a transaction that somebody else has begun, and resolves with its rows as objects: what an ORM has for plain SQL. The statement has the database's own
 * placeholders (`$1`, `$2` for PostgreSQL, `?` for MySQL and SQLite), each of them once and in the order of `params`, and no
 * other `?`, `$` or `:word`. `{ rows }` and `[rows, …]` are taken for the rows, too. Of an UPDATE, MySQL needs how many rows it changed: that
 * number, or what the driver says (`affectedRows`).
 *
 * The values are for the driver as they are: `never` goes wherever it wants them.
 */
export type SqlRunner = (sql: string, params: never[]) => unknown

export async function runRows(
  run: SqlRunner,
  sql: string,
  params: readonly unknown[],
): Promise<readonly Record<string, unknown>[]> {
  const rows = rowsIn(await run(sql, [...params] as never[]))
  if (rows !== undefined) return rows
  throw new InvalidArgumentError(
    'The function that runs SQL must resolve with rows, a list of objects; or with { rows } or [rows, …]',
    { argument: 'run' },
  )
}

function rowsIn(result: unknown): readonly Record<string, unknown>[] | undefined {
  const held =
    typeof result === 'object' && result !== null && 'rows' in result ? result.rows : (result as unknown)
  const rows: unknown = Array.isArray(held) && Array.isArray(held[0]) ? held[0] : held
  const fits = Array.isArray(rows) && rows.every((row) => typeof row === 'object' && row !== null)
  return fits ? (rows as Record<string, unknown>[]) : undefined
}

/** What a statement changed, for a server that cannot return the rows (MySQL). */
export async function runChange(run: SqlRunner, sql: string, params: readonly unknown[]): Promise<Changed> {
  const result: unknown = await run(sql, [...params] as never[])
  const rows = isNumber(result) ? Number(result) : numberIn(result, ['affectedRows', 'numAffectedRows'])
  if (rows === undefined) {
    throw new InvalidArgumentError(
      'The function that runs SQL must resolve with how many rows an UPDATE changed: a number, or what the driver says, ' +
        'which has it as affectedRows',
      { argument: 'run' },
    )
  }
  return { rows, altered: numberIn(result, ['warningStatus']) !== 0 }
}

function numberIn(result: unknown, keys: readonly string[]): number | undefined {
  for (const one of Array.isArray(result) ? (result as unknown[]) : [result]) {
    if (typeof one !== 'object' || one === null) continue
    const found = keys.map((key) => (one as Record<string, unknown>)[key]).find(isNumber)
    if (found !== undefined) return Number(found)
  }
  return undefined
}

const isNumber = (value: unknown): boolean => typeof value === 'number' || typeof value === 'bigint'

const NAME = 'holdfast_guard'

/** What the servers say when a savepoint has no transaction, or is not there any more. */
const OUTSIDE = /^(25P01|3B001|ER_SP_DOES_NOT_EXIST|1305)$/

/** MySQL: it is gone, or another of the same name has taken its place, and that is gone. */
const REPLACED = /^(ER_SP_DOES_NOT_EXIST|1305)$/

/** Guards that are under way in this process, in whatever transaction. */
let underWay = 0
/** Looks that ever began. */
let looks = 0
const ATTEMPTS = 10

/**
 * Does work that only counts inside of a transaction. A savepoint tells: one that was set outside of any is gone with its
 * statement (MySQL), or refused (PostgreSQL); and so it is with a function that uses another connection each time.
 *
 * The work may be done several times. Another guard in the same transaction takes the savepoint along when it releases its
 * own (MySQL), and which functions are on one connection nobody knows. So whoever finds it gone while others are, or were, under
 * way looks again, not in step with them: of those that look together one finds its own each time.
 */
export async function insideTransaction<T>(run: SqlRunner, work: () => Promise<T>): Promise<T> {
  underWay += 1
  try {
    for (let attempt = 1, beside = underWay > 1; ; attempt++) {
      const look = (looks += 1)
      await savepoint(run, `SAVEPOINT ${NAME}`)
      const result = await work()
      try {
        await savepoint(run, `RELEASE SAVEPOINT ${NAME}`)
        return result
      } catch (error) {
        // One that began after this may be over already.
        beside ||= underWay > 1 || looks > look
        if (!beside || !tells(error, REPLACED) || attempt === ATTEMPTS) throw error
      }
      await pause(attempt)
    }
  } finally {
    underWay -= 1
  }
}

async function savepoint(run: SqlRunner, sql: string): Promise<void> {
  try {
    await run(sql, [])
  } catch (error) {
    throw tells(error, OUTSIDE) ? outsideTransaction(error) : error
  }
}

const DEPTH = 5

/** ORMs wrap what the driver threw, each in its own way: the code is somewhere inside. */
function tells(error: unknown, codes: RegExp, depth = DEPTH): boolean {
  if (typeof error === 'string' || typeof error === 'number') return codes.test(String(error))
  if (typeof error !== 'object' || error === null || depth === 0) return false
  const names = new Set([...Object.keys(error), 'code', 'cause'])
  return [...names].some((name) => tells((error as Record<string, unknown>)[name], codes, depth - 1))
}
