import { refusal } from './errors.ts'
import type { ZooKeeperError } from './errors.ts'
import { malformed } from './jute.ts'
import type { JuteReader } from './jute.ts'
import type { Created, Operation } from './operations.ts'
import { OPCODES, readStat } from './records.ts'

/** Several writes as one: all happen, in one transaction, or none. */
export function multi(parts: readonly Operation<unknown>[]): Operation<unknown[]> {
  return {
    name: 'multi',
    opcode: OPCODES.multi,
    write: (writer) => {
      for (const part of parts) {
        writer.int(part.opcode)
        writer.bool(false)
        writer.int(-1)
        part.write(writer)
      }
      writer.int(-1)
      writer.bool(true)
      writer.int(-1)
    },
    read: (reader, zxid) => readResults(reader, zxid, parts),
  }
}

function readResults(reader: JuteReader, zxid: bigint, parts: readonly Operation<unknown>[]): unknown[] {
  const results: unknown[] = []
  for (const part of parts) {
    const opcode = reader.int()
    const done = reader.bool()
    reader.int()
    if (done) throw malformed('a multi reply with too few results')
    if (opcode === OPCODES.error) results.push(reader.int())
    else if (part.name === 'create') results.push(readCreated(reader, opcode))
    else if (opcode === part.opcode) results.push(part.read(reader, zxid))
    else throw malformed(`a multi reply with operation ${opcode} in the place of ${part.opcode}`)
  }
  return results
}

/** Whatever kind of node it was: servers answer with the path alone, or with the Stat behind it. */
function readCreated(reader: JuteReader, opcode: number): Pick<Created, 'path'> & Partial<Created> {
  const path = reader.string()
  if (opcode === OPCODES.create) return { path }
  if (opcode === OPCODES.create2) return { path, stat: readStat(reader) }
  throw malformed(`a multi reply with operation ${opcode} for a creation`)
}

/** The refusal of the part that failed. The parts before it say "rolled back", those after it "inconsistency". */
export function failureOf(
  results: readonly unknown[],
  parts: readonly Operation<unknown>[],
): ZooKeeperError | undefined {
  const failed = results.findIndex(
    (errno) => typeof errno === 'number' && errno !== 0 && errno !== RUNTIME_INCONSISTENCY,
  )
  const first = failed === -1 ? results.findIndex((errno) => typeof errno === 'number') : failed
  const errno = results[first]
  const part = parts[first]
  if (typeof errno !== 'number' || part === undefined) return undefined
  return refusal(errno, `multi: ${part.name}`, part.path)
}

const RUNTIME_INCONSISTENCY = -2
