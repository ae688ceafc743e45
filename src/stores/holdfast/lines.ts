import { StringDecoder } from 'node:string_decoder'

/** Cuts a stream of bytes into lines of text. A line longer than the limit is the end of the conversation. */
export class LineCutter {
  private rest = ''
  private readonly longest: number
  // Not the socket's own: a character may be cut in two between what came with the upgrade and what came after.
  private readonly decoder = new StringDecoder('utf8')

  constructor(longest: number) {
    this.longest = longest
  }

  /** The lines that are complete now, or null when one is too long. */
  push(bytes: Buffer): string[] | null {
    const text = this.decoder.write(bytes)
    const lines = (this.rest === '' ? text : this.rest + text).split('\n')
    this.rest = lines.pop() ?? ''
    if (this.rest.length > this.longest) return null
    return lines.some(({ length }) => length > this.longest) ? null : lines
  }
}
