/**
 * A claim's token is the transaction that created its node (czxid), which grows over the whole life of an ensemble, and below it
 * room for the hand-overs inside one process. 16 bits leave a signed 64-bit column enough for 32,767 elections of a leader
 * (the upper half of a czxid counts them); with 20 bits it would be 2,047.
 */
const HAND_OVER_BITS = 16n
export const TOKENS_PER_NODE: number = 2 ** Number(HAND_OVER_BITS)

export function tokenOf(czxid: bigint): bigint {
  return czxid << HAND_OVER_BITS
}

/** The czxid of the node that a lease's token stands for: to look it up, or to compare with a Java process's. */
export function czxidOf(token: bigint): bigint {
  return token >> HAND_OVER_BITS
}
