import { isUtf8 } from 'node:buffer'

const NEWLINE = 10

/** Cuts a stream of bytes into lines of text. A line that is longer than the limit, or no text, is the end. */
export class LineCutter {
  /** The beginning of a line, as it came. Joined once, when its end has come: each time would be a copy for every packet. */
  private rest: Buffer[] = []
  private length = 0
  private readonly longest: number

  constructor(longest: number) {
    this.longest = longest
  }

  /** The lines that are complete now, or null when it is the end. */
  push(bytes: Buffer): string[] | null {
    const cut = bytes.lastIndexOf(NEWLINE) + 1
    if (cut === 0) return this.keep(bytes) ? [] : null
    const whole = cut === bytes.length ? bytes : bytes.subarray(0, cut)
    const all = this.rest.length === 0 ? whole : Buffer.concat([...this.rest, whole])
    this.rest = []
    this.length = 0
    if (cut < bytes.length && !this.keep(bytes.subarray(cut))) return null
    // Bytes that are none would all become the same character, and different names one. A line's end is the end of a
    // character, too: what is cut off after it can be read.
    if (!isUtf8(all)) return null
    const lines = all.toString('utf8', 0, all.length - 1).split('\n')
    if (all.length <= this.longest) return lines
    return lines.some(({ length }) => length > this.longest) ? null : lines
  }

  private keep(bytes: Buffer): boolean {
    this.rest.push(bytes)
    this.length += bytes.length
    return this.length <= this.longest
  }
}
