// Chance that can be repeated: a result file names its seed, and the same seed gives the same order of rounds.

/** @returns {() => number} numbers in 0 ≤ x < 1, the same sequence for the same seed (mulberry32) */
export function randomFrom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = state
    bits = Math.imul(bits ^ (bits >>> 15), bits | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * A shuffled copy (Fisher-Yates).
 * @template T
 * @param {readonly T[]} list
 * @param {() => number} random
 * @returns {T[]}
 */
export function shuffled(list, random) {
  const copy = [...list]
  for (let last = copy.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    ;[copy[last], copy[other]] = [copy[other], copy[last]]
  }
  return copy
}
