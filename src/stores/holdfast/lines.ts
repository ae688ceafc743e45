const NEWLINE = 10

/** Cuts a stream of bytes into lines of text. A line longer than the limit is the end of the conversation. */
export class LineCutter {
  private rest: Buffer | null = null
  private readonly longest: number

  constructor(longest: number) {
    this.longest = longest
  }

  /** The lines that are complete now, or null when one is too long. */
  push(bytes: Buffer): string[] | null {
    const all = this.rest === null ? bytes : Buffer.concat([this.rest, bytes])
    // A line's end is the end of a character, too: what is cut off after it can be read.
    const end = all.lastIndexOf(NEWLINE) + 1
    this.rest = end === all.length ? null : all.subarray(end)
    if (all.length - end > this.longest) return null
    if (end === 0) return []
    const lines = all.toString('utf8', 0, end - 1).split('\n')
    if (end <= this.longest) return lines
    return lines.some(({ length }) => length > this.longest) ? null : lines
  }
}
