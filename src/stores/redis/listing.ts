import type { ListPage, ListQuery } from '../../core/contract.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { maybeInUse } from './failure.ts'
import { headerPattern, keysOf, nameOfHeader } from './keys.ts'
import type { Link, Node } from './link.ts'
import { runScript } from './run-script.ts'
import { scanStep } from './scan.ts'
import { scripts } from './scripts.gen.ts'
import { readName } from './wire.ts'

/**
 * Where the next page begins: which primary (by its first slot and its address), its SCAN cursor, and the last name shown of
 * what that returns. Not how many of them: those that were shown may have been given up meanwhile, and others would move up
 * into their places.
 */
interface Place {
  readonly slot: number
  readonly address: string
  readonly scan: string
  readonly after: string
}

interface Namespace {
  readonly prefix: string
  /** Milliseconds that the page may take. */
  readonly timeout: number
}

/** A page that takes longer than this part of its time ends where it is: the next one goes on from there. */
const ENOUGH = 0.5

/**
 * A page of the names that are held or waited for. SCAN's promise carries over: a name that is in use all the time is
 * shown, one that comes or goes meanwhile may or may not be.
 */
export async function listNames(
  link: Link,
  of: Namespace,
  { prefix: start = '', limit = 100, cursor }: ListQuery,
): Promise<ListPage> {
  const until = performance.now() + of.timeout * ENOUGH
  const primaries = await link.primaries()
  const pattern = headerPattern(link.keyPrefix + of.prefix, start)
  const names = new Set<string>()
  let { at, scan, after } = resume(primaries, parseCursor(cursor))
  for (let node = primaries[at]; node !== undefined; node = primaries[++at]) {
    const { slot = 0, address = '' } = node
    do {
      const { next, keys } = await scanStep(node, scan, pattern)
      let shown = after
      for (const used of await inUse(link, of, keys)) {
        if (used <= after || names.has(used)) continue
        if (names.size === limit)
          return { names: [...names], cursor: cursorOf({ slot, address, scan, after: shown }) }
        names.add(used)
        shown = used
      }
      scan = next
      after = ''
      if (scan !== '0' && performance.now() > until)
        return { names: [...names], cursor: cursorOf({ slot, address, scan, after }) }
    } while (scan !== '0')
  }
  return { names: [...names] }
}

/**
 * What a cursor says of one server means nothing to the next: if another one has the slots now, that one is gone through from
 * its beginning. A name twice is better than none.
 */
function resume(
  primaries: readonly Node[],
  { slot, address, scan, after }: Place,
): { at: number; scan: string; after: string } {
  const same = primaries.findIndex((node) => (node.slot ?? 0) === slot && (node.address ?? '') === address)
  if (same >= 0) return { at: same, scan, after }
  const at = primaries.findLastIndex((node) => (node.slot ?? 0) <= slot)
  return { at: Math.max(0, at), scan: '0', after: '' }
}

/** The names behind the keys that somebody holds or waits for, in order. */
async function inUse(link: Link, { prefix }: Namespace, keys: readonly string[]): Promise<readonly string[]> {
  const names = await Promise.all(
    keys.map(async (key) => {
      const name = nameOfHeader(key)
      if (name === undefined) return []
      try {
        const reply = await runScript(link, scripts.inspect, ['3', ...keysOf(prefix, name)])
        const { holders, waiters } = readName(name, reply)
        return holders.length + waiters.length > 0 ? [name] : []
      } catch (error) {
        return maybeInUse(error) ? [name] : []
      }
    }),
  )
  return names.flat().sort()
}

const coded = (text: string): string => Buffer.from(text).toString('base64url')
const decoded = (text: string): string => Buffer.from(text, 'base64url').toString()

const cursorOf = ({ slot, address, scan, after }: Place): string =>
  [slot, coded(address), scan, coded(after)].join('.')

function parseCursor(cursor?: string): Place {
  if (cursor === undefined) return { slot: 0, address: '', scan: '0', after: '' }
  const [, slot, address = '', scan = '', after = ''] =
    /^(\d{1,5})\.([\w-]*)\.(\d{1,20})\.([\w-]*)$/.exec(cursor) ?? []
  if (slot === undefined) {
    throw new InvalidArgumentError('cursor must be one that a former page came with', { argument: 'cursor' })
  }
  return { slot: Number(slot), address: decoded(address), scan, after: decoded(after) }
}
