/** What a node says about its claim, for `inspect` and for people who look at the tree. Curator writes an address there. */
export interface NodeNote {
  readonly id: string
  readonly owner: string
  readonly weight: number
  readonly capacity: number
  readonly ttl: number
}

/** What Curator writes into a node to ask its owner to let go. */
export const REVOKE = '__REVOKE__'

/** In pieces, because the owner is always the same. */
export function writeNote({ id, owner, weight, capacity, ttl }: NodeNote): string {
  if (owner !== lastOwner) {
    lastOwner = owner
    lastOwnerText = JSON.stringify(owner)
  }
  return `{"id":${JSON.stringify(id)},"owner":${lastOwnerText},"weight":${weight},"capacity":${capacity},"ttl":${ttl}}`
}

let lastOwner = ''
let lastOwnerText = '""'

/** Null: somebody else's node. */
export function readNote(data: Buffer): NodeNote | null {
  try {
    const note = JSON.parse(data.toString()) as Partial<NodeNote> | null
    if (typeof note !== 'object' || note === null) return null
    const { id, owner, weight, capacity, ttl } = note
    if (typeof id !== 'string' || typeof owner !== 'string') return null
    if (typeof weight !== 'number' || typeof capacity !== 'number' || typeof ttl !== 'number') return null
    return { id, owner, weight, capacity, ttl }
  } catch {
    return null
  }
}
