import { createHash } from 'node:crypto'
import type { Hash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'

import { LineCutter } from '../../stores/holdfast/lines.ts'
import { freshOf, removeQuietly, writeDurably } from './durable-file.ts'

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

  /** Resolves with the digest when the lines would survive a power cut. */
  async write(lines: Iterable<string>): Promise<string> {
    const hash = createHash('sha256')
    await writeDurably(this.path, inPieces(lines, hash))
    return hash.digest('hex')
  }

  /** Its lines, piece by piece. Null unless it is word for word what the digest was made of. */
  read(digest: string): Iterable<string> | null {
    try {
      const hash = createHash('sha256')
      for (const piece of piecesOf(this.path)) hash.update(piece)
      return hash.digest('hex') === digest ? linesOf(this.path) : null
    } catch {
      return null
    }
  }

  /** It holds secrets of leases, and nobody needs it any more. That it stays does no harm but this. */
  remove(): void {
    removeQuietly(this.path)
    removeQuietly(freshOf(this.path))
  }
}

const PIECE = 64 * 1024

function* inPieces(lines: Iterable<string>, hash: Hash): Iterable<string> {
  let piece = ''
  for (const line of lines) {
    piece += line
    if (piece.length < PIECE) continue
    hash.update(piece)
    yield piece
    piece = ''
  }
  hash.update(piece)
  yield piece
}

function* piecesOf(path: string): Iterable<Buffer> {
  const file = openSync(path, 'r')
  try {
    for (;;) {
      const piece = Buffer.allocUnsafe(PIECE)
      const length = readSync(file, piece)
      if (length === 0) return
      yield piece.subarray(0, length)
    }
  } finally {
    closeSync(file)
  }
}

/** Without those of a layout that is written in one: no line of ours is longer than a piece. */
function* linesOf(path: string): Iterable<string> {
  const cutter = new LineCutter(PIECE)
  for (const piece of piecesOf(path)) {
    const lines = cutter.push(piece)
    if (lines === null) return
    yield* lines
  }
}
