import { failedRequest } from './errors.ts'
import type { ZooKeeperError } from './errors.ts'
import { malformed } from './jute.ts'
import type { JuteReader } from './jute.ts'
import { multi } from './multi.ts'
import type { Operation } from './operations.ts'
import { OPCODES, readStat } from './records.ts'

/** What came of a single write. */
export interface Written {
  /** Of a created node, with the number that the server appended. */
  readonly path: string
  /** The transaction; a created node's czxid. */
  readonly zxid: bigint
}

/** A write that may become a part of a transaction with others. */
export interface Mergeable extends Operation<Written> {
  readonly path: string
  /** About as many bytes as it takes. */
  readonly size: number
  readonly creates: boolean
  /** No other node of its directory may be created by the same transaction. */
  readonly unique: boolean
}

interface Part {
  readonly operation: Mergeable
  readonly resolve: (value: Written) => void
  readonly reject: (error: ZooKeeperError) => void
}

type Send = <T>(
  operation: Operation<T>,
  resolve: (value: T) => void,
  reject: (error: ZooKeeperError) => void,
) => void

/** What goes into one transaction. More would only make those wait who come behind it, and it must stay far below 1 MB. */
const MOST_PARTS = 64
const MOST_BYTES = 64 * 1024

/**
 * The writes of one turn of the event loop, as one transaction. What costs a server is less the write than the request: eight in
 * one take a third of its time, sixty-four an eighth. Each has its own answer all the same: if one of them is refused, none
 * has happened, and they are sent again one by one.
 */
export class WriteGroup {
  private readonly send: Send
  private parts: Part[] = []
  private bytes = 0
  private creations = 0
  /** Where a node is created that must be the only one. */
  private readonly taken = new Set<string>()

  constructor(send: Send) {
    this.send = send
  }

  add(operation: Mergeable): Promise<Written> {
    if (this.parts.length > 0 && !this.takes(operation)) this.close()
    this.bytes += operation.size
    if (operation.creates) this.creations++
    if (operation.unique) this.taken.add(directoryOf(operation))
    return new Promise((resolve, reject) => void this.parts.push({ operation, resolve, reject }))
  }

  /** Sends what there is. All that is sent later is carried out later. */
  close(): void {
    const { parts } = this
    if (parts.length === 0) return
    this.clear()
    if (parts.length === 1) return this.sendEach(parts)
    const operations = parts.map(({ operation }) => operation)
    const { name, opcode, write } = multi(operations)
    this.send(
      { name, opcode, write, read: (reader, zxid) => readResults(reader, zxid, operations) },
      (results) => {
        if (results === null) this.sendEach(parts)
        else parts.forEach(({ resolve }, index) => resolve(results[index] as Written))
      },
      (error) => {
        // Together they are longer than the user's limit for a request.
        if (error.code === 'BAD_ARGUMENTS') this.sendEach(parts)
        else rejectEach(parts, error)
      },
    )
  }

  /** What has not left yet never will. */
  fail(error: ZooKeeperError): void {
    const { parts } = this
    this.clear()
    rejectEach(parts, error)
  }

  private takes(operation: Mergeable): boolean {
    if (this.parts.length >= MOST_PARTS || this.bytes + operation.size > MOST_BYTES) return false
    if (!operation.creates || this.creations === 0) return true
    // Only the directories of those that ask for it are remembered, so such a one comes only after such.
    if (operation.unique && this.taken.size < this.creations) return false
    return this.taken.size === 0 || !this.taken.has(directoryOf(operation))
  }

  private sendEach(parts: readonly Part[]): void {
    for (const { operation, resolve, reject } of parts) this.send(operation, resolve, reject)
  }

  private clear(): void {
    this.parts = []
    this.bytes = 0
    this.creations = 0
    if (this.taken.size > 0) this.taken.clear()
  }
}

function directoryOf({ path }: Mergeable): string {
  return path.slice(0, path.lastIndexOf('/'))
}

function rejectEach(parts: readonly Part[], error: ZooKeeperError): void {
  for (const { operation, reject } of parts) reject(failedRequest(operation, error))
}

/** Null: one of them was refused, so none has happened. */
function readResults(reader: JuteReader, zxid: bigint, operations: readonly Mergeable[]): Written[] | null {
  const results: Written[] = []
  for (const { path } of operations) {
    const opcode = reader.int()
    reader.bool()
    reader.int()
    switch (opcode) {
      case OPCODES.error:
        return null
      case OPCODES.delete:
        results.push({ path, zxid })
        break
      // Inside a transaction servers make one of the other. The header of a write's answer has the number of the write.
      case OPCODES.create:
      case OPCODES.create2:
        results.push({ path: reader.string(), zxid })
        if (opcode === OPCODES.create2) readStat(reader)
        break
      default:
        throw malformed(`a multi reply with operation ${opcode}`)
    }
  }
  return results
}
