import type { ListPage, ListQuery } from '../../core/contract.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { headerPattern, keysOf, nameOfHeader } from './keys.ts'
import type { Link } from './link.ts'
import { runScript } from './run-script.ts'
import { scanStep } from './scan.ts'
import { scripts } from './scripts.gen.ts'
import { readName } from './wire.ts'

/**
 * Where the next page begins: which primary, its SCAN cursor, and the last name shown of what that returns. Not how many of
 * them: those that were shown may have been given up meanwhile, and others would move up into their places.
 */
interface Place {
  readonly primary: number
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
  let { primary, scan, after } = parseCursor(cursor)
  for (let node = primaries[primary]; node !== undefined; node = primaries[++primary]) {
    do {
      const { next, keys } = await scanStep(node, scan, pattern)
      let shown = after
      for (const used of await inUse(link, of, keys)) {
        if (used <= after || names.has(used)) continue
        if (names.size === limit)
          return { names: [...names], cursor: cursorOf({ primary, scan, after: shown }) }
        names.add(used)
        shown = used
      }
      scan = next
      after = ''
      if (scan !== '0' && performance.now() > until)
        return { names: [...names], cursor: cursorOf({ primary, scan, after }) }
    } while (scan !== '0')
  }
  return { names: [...names] }
}

/** The names behind the keys that somebody holds or waits for, in order. */
async function inUse(link: Link, { prefix }: Namespace, keys: readonly string[]): Promise<readonly string[]> {
  const names = await Promise.all(
    keys.map(async (key) => {
      const name = nameOfHeader(key)
      if (name === undefined) return []
      const reply = await runScript(link, scripts.inspect, ['3', ...keysOf(prefix, name)])
      const { holders, waiters } = readName(name, reply)
      return holders.length + waiters.length > 0 ? [name] : []
    }),
  )
  return names.flat().sort()
}

const cursorOf = ({ primary, scan, after }: Place): string =>
  `${primary}.${scan}.${Buffer.from(after).toString('base64url')}`

function parseCursor(cursor = '0.0.'): Place {
  const [, primary, scan = '', after = ''] = /^(\d{1,5})\.(\d{1,20})\.([\w-]*)$/.exec(cursor) ?? []
  if (primary === undefined) {
    throw new InvalidArgumentError('cursor must be one that a former page came with', { argument: 'cursor' })
  }
  return { primary: Number(primary), scan, after: Buffer.from(after, 'base64url').toString() }
}
