import { isNoScript } from './failure.ts'
import type { Node } from './link.ts'
import { scripts } from './scripts.gen.ts'
import { readScan } from './wire.ts'

/** How many keys the server looks at in one go, for about a millisecond. */
const SCAN_COUNT = '1000'

/**
 * One step through the keys of a server that look like this. Most names that it knows are used by nobody: those are sorted
 * out there, and cost nothing but the look at them.
 */
async function scanStep(
  node: Node,
  cursor: string,
  pattern: string,
): Promise<{ readonly next: string; readonly keys: readonly string[] }> {
  const args = ['0', cursor, pattern, SCAN_COUNT]
  const reply = await node.send(['evalsha', scripts.scan.sha1, ...args]).catch((error: unknown) => {
    if (!isNoScript(error)) throw error
    return node.send(['eval', scripts.scan.lua, ...args])
  })
  return readScan(reply)
}

/** A page of names that takes longer than this part of its time ends where it is: the next one goes on from there. */
export const ENOUGH = 0.5

/**
 * A place in the keys of a server: SCAN's cursor, and the last name shown of what that returns. Not how many of them: those that
 * were shown may have been given up meanwhile, and others would move up into their places.
 */
export interface ScanPlace {
  readonly scan: string
  readonly after: string
}

export const BEGINNING: ScanPlace = { scan: '0', after: '' }

export interface Page {
  readonly names: Set<string>
  readonly limit: number
  /** When it has taken long enough. */
  readonly until: number
  /** The names behind keys that are to be shown, in order. */
  readonly inUse: (keys: readonly string[]) => Promise<readonly string[]>
}

/** Fills a page from the keys of one server. Returns where the next page begins, or nothing when there are no more. */
export async function walk(
  node: Node,
  pattern: string,
  from: ScanPlace,
  { names, limit, until, inUse }: Page,
): Promise<ScanPlace | undefined> {
  for (let { scan, after } = from; ; after = '') {
    const { next, keys } = await scanStep(node, scan, pattern)
    let shown = after
    for (const name of await inUse(keys)) {
      if (name <= after || names.has(name)) continue
      if (names.size === limit) return { scan, after: shown }
      names.add(name)
      shown = name
    }
    scan = next
    if (scan === '0') return undefined
    if (performance.now() > until) return { scan, after: '' }
  }
}
