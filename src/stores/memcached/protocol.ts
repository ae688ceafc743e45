/**
 * What memcached says: lines, some with a block of data behind. Everything we store is ASCII, so a reply is read as a
 * string in which one character is one byte.
 */

/** One reply: its first word (`HD`, `EX`, `SERVER_ERROR` …), the whole line, and the data block of a `VA`. */
export interface Reply {
  readonly code: string
  readonly line: string
  readonly value: string | undefined
}

/** What arrived is not memcached's, or not the answer to what was asked: nothing that follows can be trusted. */
export class ProtocolError extends Error {}

/** No reply to a command of ours has a longer line. */
const LONGEST_LINE = 4096
/** We never store more: a larger block is not ours, and is not worth its memory. */
const LARGEST_VALUE = 65_536

const CODES = new Set([
  'HD',
  'EN',
  'NF',
  'EX',
  'NS',
  'STORED',
  'VERSION',
  'STAT',
  'END',
  'RESET',
  'ERROR',
  'CLIENT_ERROR',
  'SERVER_ERROR',
])

/** Cuts a stream into replies, however it was cut into packets. */
export class ReplyReader {
  private text = ''
  private at = 0

  feed(text: string): void {
    this.text = this.at < this.text.length ? this.text.slice(this.at) + text : text
    this.at = 0
  }

  /** The next complete reply. Throws a ProtocolError for anything that cannot be one. */
  next(): Reply | undefined {
    const { text, at } = this
    const end = text.indexOf('\r\n', at)
    if (end < 0 || end - at > LONGEST_LINE) {
      if (text.length - at > LONGEST_LINE) throw new ProtocolError('memcached sent a line that does not end')
      return undefined
    }
    const line = text.slice(at, end)
    const space = line.indexOf(' ')
    const code = space < 0 ? line : line.slice(0, space)
    if (code === 'VA') return this.withValue(line, end + 2)
    if (!CODES.has(code)) throw new ProtocolError('what answers there does not speak the memcached protocol')
    this.at = end + 2
    return { code, line, value: undefined }
  }

  private withValue(line: string, from: number): Reply | undefined {
    const { text } = this
    const end = line.indexOf(' ', 3)
    const size = Number(end < 0 ? line.slice(3) : line.slice(3, end))
    if (!(size >= 0 && size <= LARGEST_VALUE))
      throw new ProtocolError('memcached sent a value larger than any of ours')
    const to = from + size
    if (text.length < to + 2) return undefined
    if (!text.startsWith('\r\n', to)) {
      throw new ProtocolError('memcached sent a value of another length than announced')
    }
    this.at = to + 2
    return { code: 'VA', line, value: text.slice(from, to) }
  }
}

/** What follows a flag's letter in the reply, e.g. `t` in `HD c7 t30`; undefined if it is not there. */
export function flagOf({ line }: Reply, letter: string): string | undefined {
  const start = line.indexOf(` ${letter}`)
  if (start < 0) return undefined
  const end = line.indexOf(' ', start + 1)
  return end < 0 ? line.slice(start + 2) : line.slice(start + 2, end)
}

export function isError({ code }: Reply): boolean {
  return code.length > 2 && code.endsWith('ERROR')
}
