import { isNoScript } from './failure.ts'
import type { Node } from './client/driver.ts'
import { scripts } from './scripts.gen.ts'
import { readScan } from './wire.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance } = globalThis

/** How many keys the server looks at in one go at most, for about a millisecond. */
const MOST_AT_ONCE = 1_000

/**
 * One step through the keys of a server that look like this. Most names that it knows are used by nobody: those are sorted
 * out there, and cost nothing but the look at them.
 */
async function scanStep(
  node: Node,
  cursor: string,
  pattern: string,
  count: number,
): Promise<{ readonly next: string; readonly keys: readonly string[] }> {
  const args = ['0', cursor, pattern, String(count)]
  const reply = await node.send(['evalsha', scripts.scan.sha1, ...args]).catch((error: unknown) => {
    if (!isNoScript(error)) throw error
    return node.send(['eval', scripts.scan.lua, ...args])
  })
  return readScan(reply)
}

/** A page of names that takes longer than this part of its time ends where it is: the next one goes on from there. */
export const ENOUGH = 0.5

/**
 * A place in the keys of a server: SCAN's cursor. A page ends between two steps where it can. One step, however small, may
 * find more than fits: then also the last name shown of it, and where it ended. Not how many were shown: those may have been given
 * up meanwhile, and others would move up into their places.
 */
export interface ScanPlace {
  readonly scan: string
  readonly after: string
  readonly next: string
}

const startOf = (scan: string): ScanPlace => ({ scan, after: '', next: '' })

export const BEGINNING: ScanPlace = startOf('0')

/** A place in letters that need no quoting, and back. */
export const placeText = ({ scan, after, next }: ScanPlace): string =>
  `${after === '' ? scan : `${scan}-${next}`}.${Buffer.from(after).toString('base64url')}`

export function placeIn(text: string): ScanPlace | undefined {
  const [, scan, next = '', after = ''] = /^(\d{1,20})(?:-(\d{1,20}))?\.([\w-]*)$/.exec(text) ?? []
  return scan === undefined ? undefined : { scan, after: Buffer.from(after, 'base64url').toString(), next }
}

export interface Page {
  readonly names: Set<string>
  readonly limit: number
  /** When it has taken long enough. */
  readonly until: number
  /** The names behind keys that are to be shown, in order. */
  readonly inUse: (keys: readonly string[]) => Promise<readonly string[]>
}

/**
 * Fills a page from the keys of one server. Returns where the next page begins, or nothing when there are no more.
 *
 * How far a step goes depends on how many keys there are on its way, also of others: the same step later may find names that it
 * did not find before. What was shown of it is left out only if it ended where it ended then.
 */
export async function walk(
  node: Node,
  pattern: string,
  from: ScanPlace,
  { names, limit, until, inUse }: Page,
): Promise<ScanPlace | undefined> {
  let { scan } = from
  let count = from.after === '' ? MOST_AT_ONCE : 1
  for (;;) {
    const { next, keys } = await scanStep(node, scan, pattern, count)
    const room = limit - names.size
    if (keys.length > room && count > 1) {
      count = Math.max(1, Math.floor((count * room) / keys.length))
      continue
    }
    let after = scan === from.scan && next === from.next ? from.after : ''
    for (const name of await inUse(keys)) {
      if (name <= after || names.has(name)) continue
      if (names.size === limit) return { scan, after, next }
      names.add(name)
      after = name
    }
    scan = next
    if (scan === '0') return undefined
    if (performance.now() > until) return startOf(scan)
    count = Math.min(2 * count, MOST_AT_ONCE)
  }
}
