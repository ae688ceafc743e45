/** Cuts a stream of text into lines. A line longer than the limit is the end of the conversation. */
export class LineCutter {
  private rest = ''
  private readonly longest: number

  constructor(longest: number) {
    this.longest = longest
  }

  /** The lines that are complete now, or null when one is too long. */
  push(text: string): string[] | null {
    const lines = (this.rest === '' ? text : this.rest + text).split('\n')
    this.rest = lines.pop() ?? ''
    if (this.rest.length > this.longest) return null
    return lines.some(({ length }) => length > this.longest) ? null : lines
  }
}
