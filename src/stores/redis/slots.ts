/** Which of a Cluster's 16,384 slots a key belongs to: CRC-16/XMODEM of its hash tag, as the Cluster's specification says. */
export function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open)
  const tag = close > open + 1 ? key.slice(open + 1, close) : key
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  }
  return crc & 0x3fff
}

/** The first slot of each address, of all 16,384 in their order. */
export function firstSlots(addresses: Iterable<string | undefined>): ReadonlyMap<string, number> {
  const first = new Map<string, number>()
  let slot = 0
  for (const address of addresses) {
    if (address !== undefined && !first.has(address)) first.set(address, slot)
    slot++
  }
  return first
}

/** In the order of their slots; one that has none comes last. */
export function inOrder<N extends { readonly address: string }>(
  nodes: readonly N[],
  first: ReadonlyMap<string, number>,
): (N & { readonly slot: number })[] {
  return nodes
    .map((node) => ({ ...node, slot: first.get(node.address) ?? SLOTS }))
    .sort((a, b) => a.slot - b.slot)
}

const SLOTS = 16_384

/** How often a script is sent after a slot that moves. */
export const REDIRECTIONS = 3
/** A field that no header has. */
export const NO_CLAIM = '-'

/** The server of a slot says that it is another one's now, or soon. Nothing was done. */
export function isElsewhere(error: unknown): boolean {
  return error instanceof Error && /^(MOVED|ASK|TRYAGAIN) /.test(error.message)
}

/** After so many redirections; it may be another time. */
export function stillMoving(): Error {
  return new Error('TRYAGAIN the slot is being moved')
}
