import type { ListPage, ListQuery, NameInfo } from '../../core/contract.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { isOnItsWay, maybeInUse } from './failure.ts'
import { headerPattern, keysOf, nameOfHeader } from './keys.ts'
import type { Driver, Node } from './client/driver.ts'
import { BEGINNING, ENOUGH, placeIn, placeText, walk } from './scan.ts'
import type { ScanPlace } from './scan.ts'
import { runScript } from './run-script.ts'
import { scripts } from './scripts.gen.ts'
import { readName } from './wire.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance } = globalThis

/** Where the next page begins: which primary (by its first slot and its address), and where in its keys. */
interface Place extends ScanPlace {
  readonly slot: number
  readonly address: string
}

interface Namespace {
  readonly prefix: string
  /** Milliseconds that the page may take. */
  readonly timeout: number
}

/**
 * A page of the names that are held or waited for. SCAN's promise carries over: a name that is in use all the time is
 * shown, one that comes or goes meanwhile may or may not be.
 */
export async function listNames(
  driver: Driver,
  of: Namespace,
  { prefix: start = '', limit = 100, cursor }: ListQuery,
): Promise<ListPage> {
  const until = performance.now() + of.timeout * ENOUGH
  const primaries = await driver.primaries()
  const missing = driver.missing?.()
  // Without its locks the list would say that nobody holds them.
  if (missing !== undefined) throw new Error(`the primary at ${missing} cannot be asked`)
  const pattern = headerPattern(driver.keyPrefix + of.prefix, start)
  const names = new Set<string>()
  const page = { names, limit, until, inUse: (keys: readonly string[]) => inUse(driver, of, keys) }
  let { at, place } = resume(primaries, parseCursor(cursor))
  for (let node = primaries[at]; node !== undefined; node = primaries[++at]) {
    const { slot = 0, address = '' } = node
    const rest = await walk(node, pattern, place, page)
    if (rest !== undefined) return { names: [...names], cursor: cursorOf({ slot, address, ...rest }) }
    place = BEGINNING
  }
  return { names: [...names] }
}

/**
 * What a cursor says of one server means nothing to the next: if another one has the slots now, that one is gone through from
 * its beginning. A name twice is better than none.
 */
function resume(
  primaries: readonly Node[],
  { slot, address, ...place }: Place,
): { at: number; place: ScanPlace } {
  const same = primaries.findIndex((node) => (node.slot ?? 0) === slot && (node.address ?? '') === address)
  if (same >= 0) return { at: same, place }
  const at = primaries.findLastIndex((node) => (node.slot ?? 0) <= slot)
  return { at: Math.max(0, at), place: BEGINNING }
}

/** The names behind the keys that somebody holds or waits for, in order. */
async function inUse(
  driver: Driver,
  { prefix }: Namespace,
  keys: readonly string[],
): Promise<readonly string[]> {
  const names = await Promise.all(
    keys.map(async (key) => {
      const name = nameOfHeader(key)
      if (name === undefined) return []
      try {
        const { holders, waiters } = await inspectName(driver, prefix, name)
        return holders.length + waiters.length > 0 ? [name] : []
      } catch (error) {
        return maybeInUse(error) ? [name] : []
      }
    }),
  )
  return names.flat().sort()
}

const cursorOf = ({ slot, address, ...place }: Place): string =>
  [slot, Buffer.from(address).toString('base64url'), placeText(place)].join('.')

function parseCursor(cursor?: string): Place {
  if (cursor === undefined) return { slot: 0, address: '', ...BEGINNING }
  const [, slot, address = '', rest = ''] = /^(\d{1,5})\.([\w-]*)\.(.*)$/.exec(cursor) ?? []
  const place = placeIn(rest)
  if (slot === undefined || place === undefined) {
    throw new InvalidArgumentError('cursor must be one that a former page came with', { argument: 'cursor' })
  }
  return { slot: Number(slot), address: Buffer.from(address, 'base64url').toString(), ...place }
}

/** Who holds a name and who waits for it. While its slot moves the header alone is asked, which is all that most locks have: see moving.ts. */
export async function inspectName(driver: Driver, prefix: string, name: string): Promise<NameInfo> {
  const keys = keysOf(prefix, name)
  const reply = await runScript(driver, scripts.inspect, ['3', ...keys]).catch((error: unknown) => {
    if (!isOnItsWay(error)) throw error
    return runScript(driver, scripts.inspect, ['1', keys[0]])
  })
  return readName(name, reply)
}
