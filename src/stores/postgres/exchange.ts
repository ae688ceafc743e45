import type { Cells } from '../sql/row.ts'
import type { Value } from '../sql/statement.ts'
import type { PostgresClient } from './client.ts'

/**
 * One statement on its way through a connection of pg: the kind of object that `client.query` takes from cursors and
 * streams, too. What pg itself would send is four messages, each in a piece of its own, with a question for the columns
 * that we know already; what it makes of the answer is built for any question. Together that costs the client half as
 * much again. Here a statement is one piece of bytes, and its rows are the texts that came.
 */
export class Exchange {
  // These two, and `callback`, are what pg and those who trace it look at.
  readonly text: string
  readonly name: string
  callback: (error: Error | null, exchange?: Exchange) => void
  readonly rows: Cells[] = []
  private readonly values: readonly Value[]
  private tag = ''

  /** An empty name: the server parses the statement every time. */
  constructor(
    text: string,
    name: string,
    values: readonly Value[],
    callback: (error: Error | null, exchange?: Exchange) => void,
  ) {
    this.text = text
    this.name = name
    this.values = values
    this.callback = callback
  }

  /** How many rows the statement touched: the last word of `UPDATE 1` or `INSERT 0 1`. */
  get changed(): number {
    return Number(this.tag.slice(this.tag.lastIndexOf(' ') + 1)) || 0
  }

  submit({ stream, parsedStatements }: Connection): null {
    // A connection that has just ended: pg tells all its queries.
    if (!stream.writable) return null
    const { name, text, values } = this
    const known = name !== '' && parsedStatements[name] !== undefined
    stream.write(messages(name, known ? undefined : text, values))
    return null
  }

  handleRowDescription(): void {}

  handleDataRow({ fields }: { readonly fields: Cells }): void {
    this.rows.push(fields)
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.tag = text
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}

  handleReadyForQuery(): void {
    this.callback(null, this)
  }

  handleError(error: Error): void {
    this.callback(error)
  }
}

interface Connection {
  readonly stream: { readonly writable: boolean; write(bytes: Buffer): unknown }
  /** The statements that this connection has parsed, by name. pg keeps it. */
  readonly parsedStatements: Readonly<Record<string, string | undefined>>
}

export interface Exchanging {
  query(exchange: Exchange): unknown
}

/** The client, if it is one of pg that takes such objects: not of its native cousin, nor of something alike. */
export function exchanging(client: PostgresClient): Exchanging | undefined {
  const { connection, pipeline } = client as { connection?: Partial<Connection>; pipeline?: unknown }
  const fits =
    typeof connection?.stream?.write === 'function' &&
    typeof connection.parsedStatements === 'object' &&
    // With several statements under way at once, pg refuses all that are not its own.
    pipeline !== true
  return fits ? (client as unknown as Exchanging) : undefined
}

const [PARSE, BIND] = [0x50, 0x42]
/** Execute the unnamed portal, whatever the number of rows; sync. */
const EXECUTE_AND_SYNC = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0x53, 0, 0, 0, 4])

/** Parse (with a text), bind, execute and sync. Values and columns travel as text; the server finds out the types. */
function messages(name: string, text: string | undefined, values: readonly Value[]): Buffer {
  const words = values.map(wordOf)
  const nameSize = Buffer.byteLength(name)
  const textSize = text === undefined ? 0 : Buffer.byteLength(text)
  const parseSize = text === undefined ? 0 : 4 + nameSize + 1 + textSize + 1 + 2
  let bindSize = 4 + 1 + nameSize + 1 + 2 + 2 + 2
  for (const word of words) bindSize += 4 + (word === null ? 0 : Buffer.byteLength(word))

  const size = (text === undefined ? 0 : 1 + parseSize) + 1 + bindSize + EXECUTE_AND_SYNC.length
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  if (text !== undefined) {
    at = head(bytes, at, PARSE, parseSize)
    at = line(bytes, at, name)
    at = line(bytes, at, text)
    at = bytes.writeInt16BE(0, at)
  }
  at = head(bytes, at, BIND, bindSize)
  at = line(bytes, at, '')
  at = line(bytes, at, name)
  at = bytes.writeInt16BE(0, at)
  at = bytes.writeInt16BE(words.length, at)
  for (const word of words) {
    const from = at + 4
    const end = word === null ? from : from + bytes.write(word, from)
    bytes.writeInt32BE(word === null ? -1 : end - from, at)
    at = end
  }
  at = bytes.writeInt16BE(0, at)
  EXECUTE_AND_SYNC.copy(bytes, at)
  return bytes
}

function head(bytes: Buffer, at: number, kind: number, size: number): number {
  bytes[at] = kind
  return bytes.writeInt32BE(size, at + 1)
}

function line(bytes: Buffer, at: number, text: string): number {
  const end = at + bytes.write(text, at)
  bytes[end] = 0
  return end + 1
}

/** A value as the server reads it; lists as `{"a","b"}`. */
export function wordOf(value: Value): string | null {
  if (value === null || typeof value === 'string') return value
  return typeof value === 'number' ? String(value) : `{${value.map(elementOf).join()}}`
}

function elementOf(value: string | null): string {
  return value === null ? 'NULL' : `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`
}
