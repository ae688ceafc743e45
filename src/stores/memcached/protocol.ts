/**
 * What memcached says: lines, some with a block of data behind. Everything we store is ASCII, so a reply is read as a
 * string in which one character is one byte.
 */

/** One reply. `value` is the data block of a `VA`. */
export interface Reply {
  readonly line: string
  readonly value: string | undefined
}

/** What arrived is not memcached's, or not the answer to what was asked: nothing that follows can be trusted. */
export class ProtocolError extends Error {}

/** No reply to a command of ours has a longer line. */
const LONGEST_LINE = 4096
/** We never store more: a larger block is not ours, and is not worth its memory. */
const LARGEST_VALUE = 65_536

const FIRST_WORDS = new Set([
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
    if (!line.startsWith('VA ')) {
      if (!FIRST_WORDS.has(firstWord(line)))
        throw new ProtocolError('what answers there does not speak the memcached protocol')
      this.at = end + 2
      return { line, value: undefined }
    }
    const size = sizeOf(line)
    const from = end + 2
    if (text.length < from + size + 2) return undefined
    if (!text.startsWith('\r\n', from + size))
      throw new ProtocolError('memcached sent a value of another length than announced')
    this.at = from + size + 2
    return { line, value: text.slice(from, from + size) }
  }
}

function firstWord(line: string): string {
  const space = line.indexOf(' ')
  return space < 0 ? line : line.slice(0, space)
}

function sizeOf(line: string): number {
  const digits = /^VA (\d{1,9})(?: |$)/.exec(line)?.[1]
  const size = Number(digits ?? NaN)
  if (!(size <= LARGEST_VALUE)) throw new ProtocolError('memcached sent a value larger than any of ours')
  return size
}

/** `HD`, `EX`, `SERVER_ERROR` … */
export function codeOf({ line }: Reply): string {
  return firstWord(line)
}

/** What follows a flag's letter in the reply, e.g. `t` in `HD c7 t30`; undefined if it is not there. */
export function flagOf({ line }: Reply, letter: string): string | undefined {
  const start = line.indexOf(` ${letter}`)
  if (start < 0) return undefined
  const end = line.indexOf(' ', start + 1)
  return end < 0 ? line.slice(start + 2) : line.slice(start + 2, end)
}

export function isError({ line }: Reply): boolean {
  return line.startsWith('SERVER_ERROR') || line.startsWith('CLIENT_ERROR') || line === 'ERROR'
}
