import type { ClaimInfo, NameInfo, Unknown } from '../../core/contract.ts'
import { isUnknown } from '../../core/unknown.ts'
import { ADDED_S } from './capabilities.ts'
import { describe, look, readLook } from './commands.ts'
import type { StoreContext, Exchange } from './exchange.ts'
import type { Grant } from './grants.ts'
import { bareId, isOurs, isTombstone, nonceOf } from './keys.ts'
import { termsFor } from './connection.ts'
import type { Reply } from './protocol.ts'

// Taken once: a user's fake timers must not freeze it.
const { setTimeout } = globalThis

/** A holder writes down who it is this long after its grant; who finds nothing looks again a little later. */
const DELAY_MS = 5
const LOOK_AGAIN_MS = 25
/** Nobody waits for it; after this a connection that does not answer is looked at. */
const TIMEOUT_MS = 10_000
const LONGEST_OWNER = 1024

/**
 * A lock's item has room for one number, so who holds it is written beside it, a moment after the grant. Locks that are
 * released by then never cost that request, and those of one moment are written together. (At once would cost a tenth of
 * an acquire and release; at the end of the turn, by `setImmediate`, as much.)
 */
export class Descriptions {
  private due: Grant[] = []
  private timer: NodeJS.Timeout | null = null

  later(grant: Grant): void {
    if (grant.described) return
    const { due } = this
    const last = due.length - 1
    if (last < 0) this.arm()
    // Who takes and gives back in a loop leaves nothing here for the garbage collector to carry around.
    if (last >= 0 && due[last]?.over === true) due[last] = grant
    else due.push(grant)
  }

  private arm(): void {
    // Used again and again: to make a new one is dearer.
    if (this.timer === null) this.timer = setTimeout(this.write, DELAY_MS).unref()
    else this.timer.refresh()
  }

  readonly write = (): void => {
    const { due } = this
    this.due = []
    const terms = termsFor(TIMEOUT_MS)
    for (const grant of due) {
      const { id, claimKeys, owner, token, connection, seconds, over } = grant
      if (over || grant.described) continue
      grant.described = true
      connection.tell(describe(claimKeys, encode(id, owner, token), seconds), 1, terms)
    }
  }
}

function encode(id: string, owner: string, token: bigint): string {
  const text = JSON.stringify([id, owner.slice(0, LONGEST_OWNER), token.toString()])
  // One character, one byte.
  return text.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

interface Description {
  readonly id: string
  readonly owner: string
  readonly token: bigint
}

function decode(text: string | undefined): Description | undefined {
  if (text === undefined) return undefined
  try {
    const [id, owner, token] = JSON.parse(text) as readonly unknown[]
    if (typeof id !== 'string' || typeof owner !== 'string' || typeof token !== 'string') return undefined
    return { id, owner, token: BigInt(token) }
  } catch {
    return undefined
  }
}

/** Who holds a name. Of a holder whose description is gone only the time that is left is known. */
export async function inspect(
  context: StoreContext,
  exchange: Exchange,
  name: string,
): Promise<NameInfo | Unknown> {
  context.descriptions.write()
  const info = await lookUp(context, exchange, name)
  if (isUnknown(info) || info.holders[0]?.owner !== NOBODY_KNOWS) return info
  await new Promise((resolve) => void setTimeout(resolve, LOOK_AGAIN_MS))
  return lookUp(context, exchange, name)
}

function lookUp(context: StoreContext, exchange: Exchange, name: string): Promise<NameInfo | Unknown> {
  return exchange.send<NameInfo>(look(context.keys.places(name)), 1, ([seen]) => {
    const { value, secondsLeft } = readLook(seen as Reply)
    if (!isOurs(value) || isTombstone(value)) return { name, capacity: 1, holders: [], waiters: [] }
    const expiresIn = Math.max(1, (secondsLeft - ADDED_S) * 1000)
    return exchange.send<NameInfo>(`mg ${context.keys.description(value)} v`, 1, ([details]) => {
      const holder = holderFrom(value, decode(details?.value), expiresIn)
      return { name, capacity: 1, holders: [holder], waiters: [] }
    })
  })
}

const NOBODY_KNOWS = 'unknown'

function holderFrom(nonce: string, described: Description | undefined, expiresIn: number): ClaimInfo {
  if (described !== undefined && nonceOf(described.id) === nonce)
    return { ...described, weight: 1, expiresIn }
  return { id: bareId(nonce), owner: NOBODY_KNOWS, weight: 1, expiresIn }
}
