// The arithmetic of the benchmark. Medians and their spread, never means: a machine that does something else for a
// moment makes one round slow, and a mean would spread that over all of them.

/** The value below which a share `q` of the sorted values lies; NaN when there is none. */
export function quantile(sorted, q) {
  if (sorted.length === 0) return NaN
  const place = q * (sorted.length - 1)
  const below = Math.floor(place)
  const above = Math.ceil(place)
  // Apart, because between two infinities there is no difference to take a part of.
  if (sorted[below] === sorted[above]) return sorted[below]
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below)
}

const ascending = (values) => Float64Array.from(values).sort()

export const median = (values) => quantile(ascending(values), 0.5)

/** What a set of times says: the middle, the tail, the worst. */
export function tail(values) {
  const sorted = ascending(values)
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), max: quantile(sorted, 1) }
}

/**
 * One number a round becomes one number a run, with what it varied by.
 * @typedef {{ median: number, min: number, max: number, rounds: number }} Spread
 * @returns {Spread | undefined} undefined when no round had the number
 */
export function spread(values) {
  const sorted = ascending(values.filter((value) => value !== undefined && !Number.isNaN(value)))
  if (sorted.length === 0) return undefined
  return { median: quantile(sorted, 0.5), min: sorted[0], max: sorted.at(-1), rounds: sorted.length }
}

/** Most to least. 1 is perfect; Infinity when somebody got nothing. */
export const fairness = (counts) => (counts.length === 0 ? NaN : Math.max(...counts) / Math.min(...counts))
