import { now } from './client/time.ts'

/** Servers look for empty containers once a minute, by default. */
const FRESH_MS = 30_000
const MOST = 4096

/** A node of ours that stood first in its directory. */
interface Visit {
  readonly sequence: number
  readonly czxid: bigint
}

interface Directory {
  seenAt: number
  /** Our last node there that stood first and was removed; null: nothing is known. */
  visit: Visit | null
  /** The last time, nobody had been there in between. */
  quiet: boolean
}

/** What this process knows about directories without asking: whether they are there, and whether anybody else comes to them. */
export class Directories {
  private readonly byPath = new Map<string, Directory>()

  /**
   * It was there a moment ago. For any other one its creation is sent along with the first request that needs it: if it was
   * there, that costs a refusal in the same flight, and if it was not, it saves two.
   */
  has(dir: string): boolean {
    const known = this.byPath.get(dir)
    return known !== undefined && isFresh(known)
  }

  /** Nobody came between our last two visits, so most likely nobody has come since the last. */
  isQuiet(dir: string): boolean {
    const known = this.byPath.get(dir)
    return known !== undefined && known.quiet && known.visit !== null && isFresh(known)
  }

  /** Our node was created there. True: its number alone says that nobody stands before it. */
  entered(dir: string, node: Visit): boolean {
    const known = this.byPath.get(dir) ?? { seenAt: 0, visit: null, quiet: false }
    const alone = known.visit !== null && isNext(known.visit, node)
    known.seenAt = now()
    known.visit = null
    known.quiet = alone
    // The last in the map is the last seen.
    this.byPath.delete(dir)
    this.byPath.set(dir, known)
    if (this.byPath.size > MOST) this.byPath.delete(this.byPath.keys().next().value as string)
    return alone
  }

  /** Our node stood first there, and has been removed. */
  left(dir: string, visit: Visit): void {
    const known = this.byPath.get(dir)
    if (known !== undefined) known.visit = visit
  }

  gone(dir: string): void {
    this.byPath.delete(dir)
  }
}

function isFresh({ seenAt }: Directory): boolean {
  return now() - seenAt < FRESH_MS
}

/**
 * Whether nobody created anything in a directory between a node that stood first there, and is gone, and this one. The number in
 * a node's name counts the creations in its directory, so the next number says that there were none; unless the directory was
 * removed, made anew, and used until its number was the same. For that there must have been two transactions and one for
 * each creation, and it is known how many there were at all. (Curator and this store never create two nodes of one
 * directory in one transaction.)
 *
 * A writer that went on as a reader has a node with an old number, created later than the number says. That deceives nobody: its
 * creation counts like any other, so it lies either before the last node's creation, which then did not stand first while it
 * was there, or after it, and then the next number is not the next one any more.
 */
export function isNext(last: Visit, node: Visit): boolean {
  if (node.sequence !== last.sequence + 1 || last.sequence < 0) return false
  const [from, to] = [Number(last.czxid), Number(node.czxid)]
  // The upper half of a czxid counts elections: across one there is nothing to count. And doubles are exact only so far.
  if (Math.floor(from / ELECTION) !== Math.floor(to / ELECTION) || to > Number.MAX_SAFE_INTEGER) return false
  return to > from && to - from - 1 < last.sequence + 3
}

const ELECTION = 2 ** 32
