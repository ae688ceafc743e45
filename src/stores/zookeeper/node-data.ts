/** What a node says about its claim, for `inspect` and for people who look at the tree. Curator writes an address there. */
export interface NodeNote {
  readonly id: string
  readonly owner: string
  readonly weight: number
  readonly capacity: number
  readonly ttl: number
  /** Of the writer's node in whose place this reader's stands: what its tokens are made of. */
  readonly czxid?: bigint
}

/** What Curator writes into a node to ask its owner to let go. */
export const REVOKE = '__REVOKE__'

export function writeNote({ id, owner, weight, capacity, ttl, czxid }: NodeNote): string {
  const note = { id, owner, weight, capacity, ttl }
  return JSON.stringify(czxid === undefined ? note : { ...note, czxid: String(czxid) })
}

/** Null: somebody else's node. */
export function readNote(data: Buffer): NodeNote | null {
  try {
    const note = JSON.parse(data.toString()) as Partial<Record<keyof NodeNote, unknown>> | null
    if (typeof note !== 'object' || note === null) return null
    const { id, owner, weight, capacity, ttl, czxid } = note
    if (typeof id !== 'string' || typeof owner !== 'string') return null
    if (typeof weight !== 'number' || typeof capacity !== 'number' || typeof ttl !== 'number') return null
    const found = { id, owner, weight, capacity, ttl }
    return typeof czxid === 'string' ? { ...found, czxid: BigInt(czxid) } : found
  } catch {
    return null
  }
}
