import { DriverMissingError, HoldfastError } from '../core/errors.ts'
import { RefusedError } from '../stores/holdfast/refused.ts'
import { elsewhere } from './driver-place.ts'

/** What the command's exit codes mean. docs/command.md has the same table, and a test compares the two. */
export const EXIT = {
  ok: 0,
  /** `doctor` found something wrong, or a case of `conformance` failed. */
  failed: 1,
  usage: 64,
  storeUnavailable: 69,
  /** A fault of holdfast's own. */
  software: 70,
  /** The system refused something that holdfast needs: a process, a socket, a file. */
  system: 71,
  notAcquired: 75,
  /** A lock server knows the token and does not allow it. */
  noPermission: 77,
  /** Just outside the range of sysexits.h, so that a command that uses those cannot be mistaken for it. */
  lockLost: 79,
  cannotExecute: 126,
  notFound: 127,
} as const

/** Shells say it this way too. */
export function exitOfSignal(signal: number): number {
  return 128 + signal
}

/** The command line is wrong. Its message is the whole answer; nothing was done. */
export class UsageError extends Error {
  override name = 'UsageError'
}

/** Something ended the command that is no fault of the command line. Its message is the whole answer. */
export class CommandError extends Error {
  override name = 'CommandError'
  readonly exitCode: number

  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

/** The exit code for an error, whoever threw it. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage
  if (error instanceof CommandError) return error.exitCode
  if (isSystemError(error)) return EXIT.system
  if (!(error instanceof HoldfastError)) return EXIT.software
  if (noPermission(error) !== null) return EXIT.noPermission
  switch (error.code) {
    case 'INVALID_ARGUMENT':
    case 'UNSUPPORTED':
    case 'CAPACITY_MISMATCH':
      return EXIT.usage
    case 'STORE_UNAVAILABLE':
    case 'QUORUM_UNAVAILABLE':
    case 'DRIVER_MISSING':
      return EXIT.storeUnavailable
    case 'LOCK_TIMEOUT':
      return EXIT.notAcquired
    case 'LOCK_LOST':
      return EXIT.lockLost
    case 'LOCK_ABORTED':
    case 'LOCK_REENTRY':
    case 'CLOSED':
    case 'CONFLICT':
    case 'STORE_BROKEN':
      return EXIT.software
  }
}

const NO_PERMISSION = new Set(['FORBIDDEN', 'UNAUTHENTICATED'])

/** What a lock server that answered, and does not allow it, said. */
function noPermission({ cause }: Error): RefusedError | null {
  return cause instanceof RefusedError && NO_PERMISSION.has(cause.code ?? '') ? cause : null
}

/** The system said no: a port in use, a file that may not be read. No fault of holdfast's, so no stack either. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error
}

/** What an error says to people: its message and, where it has one, the cause's. Stacks are for `DEBUG=holdfast`. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  const refused = noPermission(error)
  // Not "did not answer, because": it did.
  if (refused !== null) return refused.message
  const known =
    error instanceof HoldfastError ||
    error instanceof UsageError ||
    error instanceof CommandError ||
    isSystemError(error)
  const lines = [known ? error.message : `${error.name}: ${error.message}`]
  // Not what the message says already.
  if (cause instanceof Error && !error.message.includes(cause.message))
    lines.push(`  because: ${cause.message}`)
  const place = error instanceof DriverMissingError ? elsewhere() : undefined
  if (place !== undefined) lines.push(`  ${place}`)
  if (!known || process.env['DEBUG'] === 'holdfast') lines.push(error.stack ?? '')
  return lines.join('\n')
}
