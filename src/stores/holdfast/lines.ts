import { isUtf8 } from 'node:buffer'

const NEWLINE = 10

/** Cuts a stream of bytes into lines of text. A line that is longer than the limit, or no text, is the end. */
export class LineCutter {
  private rest: Buffer | null = null
  private readonly longest: number

  constructor(longest: number) {
    this.longest = longest
  }

  /** The lines that are complete now, or null when it is the end. */
  push(bytes: Buffer): string[] | null {
    const all = this.rest === null ? bytes : Buffer.concat([this.rest, bytes])
    // A line's end is the end of a character, too: what is cut off after it can be read.
    const end = all.lastIndexOf(NEWLINE) + 1
    this.rest = end === all.length ? null : all.subarray(end)
    if (all.length - end > this.longest) return null
    if (end === 0) return []
    // Bytes that are none would all become the same character, and different names one.
    if (!isUtf8(all.subarray(0, end))) return null
    const lines = all.toString('utf8', 0, end - 1).split('\n')
    if (end <= this.longest) return lines
    return lines.some(({ length }) => length > this.longest) ? null : lines
  }
}
