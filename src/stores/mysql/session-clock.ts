import { DatabaseError } from '../sql/failure.ts'

/**
 * `SET timestamp` on a connection moves the clock of all that is sent there, and so the end of every lease: one that is
 * taken an hour ago is over for everybody else. SYSDATE is not moved. It cannot take the place of the clock: it may differ
 * from one place of a statement to the next, and from a server to its replica.
 */
export const DRIFT = 'SELECT TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) LIMIT 1'

/** Microseconds. Between the two there may be a moment. */
const MOST = 1_000_000
const EVERY_MS = 1000

// Taken once: a user's fake timers must not make time stand still here.
const { performance } = globalThis

interface Look {
  at: number
  /** Bytes that had been sent when we gave the connection back: as long as there are no more, nobody else had it. */
  sent: number | undefined
  /** The same, whoever had it before that. */
  back: number | undefined
}

const looks = new WeakMap<object, Look>()

/** Whether somebody may have set the connection's clock: it is new to us, or was in other hands for the first time in a second. */
export function isClockDue(connection: object): boolean {
  const core = coreOf(connection)
  const look = looks.get(core)
  if (look === undefined) return true
  if (look.sent !== undefined && look.sent === sentBy(core)) return false
  // It stays so until the next look.
  look.sent = undefined
  return performance.now() - look.at >= EVERY_MS
}

/** Throws if the clock was set. `drift` asks for it; twice, for a server may stand still in the middle of an answer. */
export async function checkClock(connection: object, drift: () => Promise<number>): Promise<void> {
  if (isSet(await drift()) && isSet(await drift())) throw CLOCK_SET
  const core = coreOf(connection)
  looks.set(core, { at: performance.now(), sent: 0, back: looks.get(core)?.back })
}

/** To be called before the connection goes back. */
export function noteSent(connection: object): void {
  const core = coreOf(connection)
  const look = looks.get(core)
  if (look === undefined) return
  look.back = sentBy(core)
  if (look.sent !== undefined) look.sent = look.back
}

/** Whether nobody else has used the connection since we gave it back. */
export function isUntouched(connection: object): boolean {
  const core = coreOf(connection)
  const back = looks.get(core)?.back
  return back !== undefined && back === sentBy(core)
}

const isSet = (drift: number): boolean => !(Math.abs(drift) < MOST)

/** What our own object, and that of mysql2 with promises, are wrapped around. */
function coreOf(connection: object): object {
  const { connection: inner } = connection as { connection?: unknown }
  return typeof inner === 'object' && inner !== null ? coreOf(inner) : connection
}

function sentBy(core: object): number | undefined {
  const { stream } = core as { stream?: { bytesWritten?: unknown } }
  return typeof stream?.bytesWritten === 'number' ? stream.bytesWritten : undefined
}

const CLOCK_SET = new DatabaseError(
  'The clock of the connection was set (SET timestamp): a lock taken there would end at another time than for everybody ' +
    'else. Set it back before the connection is given back to the pool: SET timestamp = DEFAULT',
  'HOLDFAST_CLOCK',
)
