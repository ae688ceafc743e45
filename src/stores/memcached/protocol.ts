/**
 * What memcached says: lines, some with a block of data behind. Everything we store is ASCII, so a reply is read as a
 * string in which one character is one byte.
 */

/** What arrived is not memcached's, or not the answer to what was asked: nothing that follows can be trusted. */
export class ProtocolError extends Error {}

/** No reply to a command of ours has a longer line. */
const LONGEST_LINE = 4096
/** We never store more: a larger block is not ours, and is not worth its memory. */
const LARGEST_VALUE = 65_536

const LONG_CODES = new Set([
  'STORED',
  'VERSION',
  'STAT',
  'END',
  'RESET',
  'ERROR',
  'CLIENT_ERROR',
  'SERVER_ERROR',
])

const ANOTHER_PROTOCOL = 'what answers there does not speak the memcached protocol'

const LF = 10
const CR = 13
const SPACE = 32
const ZERO = 48

/**
 * One reply: its first word (`HD`, `EX`, `SERVER_ERROR` …), the whole line, and the data block of a `VA`. It knows where
 * they are in what arrived, and cuts out what is asked for: most of it never is.
 */
export class Reply {
  readonly code: string
  private readonly text: string
  private readonly from: number
  private readonly to: number
  /** The end of the block, which begins behind the line; 0 if there is none. */
  private valueTo = 0

  /** The line from `from` to `to`. */
  constructor(text: string, from: number, to: number) {
    this.code = codeOf(text, from, to)
    this.text = text
    this.from = from
    this.to = to
  }

  /** Takes the block, and says where it ends; -1 if not all of it is there. */
  takeValue(): number {
    const { text, to } = this
    const valueTo = to + 2 + sizeIn(text, this.from, to)
    if (text.length < valueTo + 2) return -1
    if (text.charCodeAt(valueTo) !== CR || text.charCodeAt(valueTo + 1) !== LF) {
      throw new ProtocolError('memcached sent a value of another length than announced')
    }
    return (this.valueTo = valueTo)
  }

  get line(): string {
    return this.text.slice(this.from, this.to)
  }

  get value(): string | undefined {
    return this.valueTo === 0 ? undefined : this.text.slice(this.to + 2, this.valueTo)
  }

  /** The value, if it is a number that can be told exactly; NaN otherwise. */
  get number(): number {
    return this.valueTo === 0 ? NaN : digits(this.text, this.to + 2, this.valueTo)
  }

  /** What follows a flag's letter, e.g. `30` for `t` in `HD c7 t30`; undefined if it is not there. */
  flag(letter: string): string | undefined {
    const from = this.find(letter)
    return from < 0 ? undefined : this.text.slice(from, this.wordEnd(from))
  }

  /** The same, where it is a number; NaN otherwise. */
  flagNumber(letter: string): number {
    const from = this.find(letter)
    return from < 0 ? NaN : digits(this.text, from, this.wordEnd(from))
  }

  private find(letter: string): number {
    const { text, to } = this
    const wanted = letter.charCodeAt(0)
    for (let at = this.from + 2; at < to; at++) {
      if (text.charCodeAt(at) === SPACE && text.charCodeAt(at + 1) === wanted) return at + 2
    }
    return -1
  }

  private wordEnd(from: number): number {
    const { text, to } = this
    let at = from
    while (at < to && text.charCodeAt(at) !== SPACE) at++
    return at
  }
}

/** NaN unless there is nothing but digits, and few enough of them. */
function digits(text: string, from: number, to: number): number {
  let number = from < to ? 0 : NaN
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - ZERO
    if (!(digit >= 0 && digit <= 9)) return NaN
    number = number * 10 + digit
  }
  return number <= Number.MAX_SAFE_INTEGER ? number : NaN
}

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
    if (at === text.length) return undefined
    // One character is looked for much faster than two.
    const feed = text.indexOf('\n', at)
    if ((feed < 0 ? text.length : feed) - at > LONGEST_LINE) {
      throw new ProtocolError('memcached sent a line that does not end')
    }
    if (feed < 0) return undefined
    const end = feed - 1
    if (text.charCodeAt(end) !== CR) throw new ProtocolError(ANOTHER_PROTOCOL)
    const reply = new Reply(text, at, end)
    const to = reply.code === 'VA' ? reply.takeValue() : end
    if (to < 0) return undefined
    this.at = to + 2
    return reply
  }
}

/** The codes that every request brings are told by their letters: nothing is cut out for them, and no table asked. */
function codeOf(text: string, at: number, end: number): string {
  if (at + 2 === end || text.charCodeAt(at + 2) === SPACE) {
    switch ((text.charCodeAt(at) << 8) | text.charCodeAt(at + 1)) {
      case 0x4844:
        return 'HD'
      case 0x5641:
        return 'VA'
      case 0x454e:
        return 'EN'
      case 0x4e46:
        return 'NF'
      case 0x4558:
        return 'EX'
      case 0x4e53:
        return 'NS'
      default:
        throw new ProtocolError(ANOTHER_PROTOCOL)
    }
  }
  const space = text.indexOf(' ', at)
  const code = text.slice(at, space < 0 || space > end ? end : space)
  if (!LONG_CODES.has(code)) throw new ProtocolError(ANOTHER_PROTOCOL)
  return code
}

/** How long the block is that `VA 19 …` announces. */
function sizeIn(text: string, at: number, end: number): number {
  const space = text.indexOf(' ', at + 3)
  const size = digits(text, at + 3, space < 0 || space > end ? end : space)
  if (!(size <= LARGEST_VALUE)) throw new ProtocolError('memcached sent a value larger than any of ours')
  return size
}

export function isError({ code }: Reply): boolean {
  return code.length > 2 && code.endsWith('ERROR')
}
