import { createHash } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'

import { writeDurably } from './durable-file.ts'

/**
 * What a server that was told to stop leaves to the next one: its claims, in a file beside the horizon. The file says
 * nothing by itself. It counts while the horizon names it by its digest, and the horizon does so from the end of a stop to
 * the next write: a file that is torn, of an earlier stop, or used already has no one to vouch for it.
 */
export class ClaimsFile {
  readonly path: string

  constructor(statePath: string) {
    this.path = `${statePath}.claims`
  }

  /** Resolves with the digest when the text would survive a power cut. */
  async write(text: string): Promise<string> {
    await writeDurably(this.path, text)
    return digestOf(text)
  }

  /** Null unless it is word for word what the digest was made of. */
  read(digest: string): string | null {
    try {
      const text = readFileSync(this.path, 'utf8')
      return digestOf(text) === digest ? text : null
    } catch {
      return null
    }
  }

  /** It holds secrets of leases, and nobody needs it any more. That it stays does no harm but this. */
  remove(): void {
    try {
      rmSync(this.path, { force: true })
    } catch {
      // Read-only, or gone with its folder.
    }
  }
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')
