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
export async function scanStep(
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
