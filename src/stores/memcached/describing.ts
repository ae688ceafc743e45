import type { ClaimInfo, NameInfo, Unknown } from '../../core/contract.ts'
import { ADDED_S } from './capabilities.ts'
import { describe, look, readDescription, readLook } from './commands.ts'
import type { Desk, Exchange } from './exchange.ts'
import type { Grant } from './grants.ts'
import { bareId, isOurs, isTombstone, nonceOf } from './keys.ts'
import type { Reply } from './protocol.ts'

const { setImmediate } = globalThis

/** Nobody waits for it; after this a connection that does not answer is looked at. */
const TIMEOUT_MS = 10_000
const LONGEST_OWNER = 1024

/**
 * A lock's item has room for one number, so who holds it is written beside it, a turn of the event loop after the grant.
 * A lock that was released by then never costs that request.
 */
export class Descriptions {
  private readonly due = new Map<string, Grant>()
  private scheduled = false

  later(id: string, grant: Grant): void {
    if (grant.described) return
    this.due.set(id, grant)
    if (this.scheduled) return
    this.scheduled = true
    setImmediate(this.write)
  }

  drop(id: string): void {
    this.due.delete(id)
  }

  private readonly write = (): void => {
    this.scheduled = false
    for (const [id, grant] of this.due) {
      const { wire, owner, token, link, seconds } = grant
      grant.described = true
      link.tell(describe(wire, encode(id, owner, token), seconds), 1, TIMEOUT_MS)
    }
    this.due.clear()
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

/** Who holds a name. Of a holder whose description is gone (or not there yet) only the time that is left is known. */
export function inspect(desk: Desk, exchange: Exchange, name: string): Promise<NameInfo | Unknown> {
  const place = { name, key: desk.keys.lock(name), nonce: '', keys: desk.keys }
  return exchange.send<NameInfo>(look(place), 1, ([seen]) => {
    const { value, secondsLeft } = readLook(seen as Reply)
    if (!isOurs(value) || isTombstone(value)) return { name, capacity: 1, holders: [], waiters: [] }
    const expiresIn = Math.max(1, (secondsLeft - ADDED_S) * 1000)
    return exchange.send<NameInfo>(readDescription({ ...place, nonce: value }), 1, ([details]) => {
      const holder = holderFrom(value, decode(details?.value), expiresIn)
      return { name, capacity: 1, holders: [holder], waiters: [] }
    })
  })
}

function holderFrom(nonce: string, described: Description | undefined, expiresIn: number): ClaimInfo {
  if (described !== undefined && nonceOf(described.id) === nonce)
    return { ...described, weight: 1, expiresIn }
  return { id: bareId(nonce), owner: 'unknown', weight: 1, expiresIn }
}
