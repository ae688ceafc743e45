// From rounds to a result: medians with their spread, and ratios taken round by round, because two numbers of the
// same minute can be compared where two of different minutes cannot.
import { METRICS } from './metrics.mjs'
import { spread } from '../lib/stats.mjs'

/**
 * @typedef {object} Row
 * @property {string} id
 * @property {string} label
 * @property {string} role
 * @property {Record<string, import('../lib/stats.mjs').Spread>} summary by metric
 * @property {Record<string, number>[]} rounds
 *
 * @typedef {object} Result one workload on one store in one variant
 * @property {string} workload
 * @property {string} store
 * @property {string} variant
 * @property {readonly Row[]} rows
 */

/** @returns {Result[]} */
export function summarise(bout, roundsOf) {
  const { workload, store, plan, contestants } = bout
  return workload.variants(store, plan).map((variant) => {
    const rows = contestants.map((contestant) => row(contestant, roundsOf.get(contestant.id), variant.id))
    for (const one of rows) addRatio(one, limitFor(one, rows), workload.headline)
    const { id, label, ...more } = variant
    return {
      workload: workload.id,
      title: workload.title,
      about: workload.about,
      store,
      variant: id,
      variantLabel: label,
      ...more,
      headline: workload.headline,
      columns: workload.columns,
      rows: rows.filter(({ rounds }) => rounds.some((round) => round !== null)),
    }
  })
}

function row(contestant, rounds, variant) {
  const { id, label, family, role, config, driver, ownStore, secondary } = contestant
  const mine = rounds.map((round) => round?.[variant] ?? null)
  const failures = rounds.filter((round) => round?.failed !== undefined).map(({ failed }) => failed)
  const keys = new Set(mine.flatMap((round) => Object.keys(round ?? {})))
  const summary = {}
  for (const key of keys) {
    const values = mine.map((round) => round?.[key])
    const found = METRICS[key]?.total ? total(values) : spread(values)
    if (found !== undefined) summary[key] = found
  }
  return { id, label, family, role, config, driver, ownStore, secondary, failures, summary, rounds: mine }
}

function total(values) {
  const known = values.filter((value) => value !== undefined && !Number.isNaN(value))
  if (known.length === 0) return undefined
  const sum = known.reduce((all, value) => all + value, 0)
  return { median: sum, min: Math.min(...known), max: Math.max(...known), rounds: known.length }
}

/** The limit on the same driver, or else the one there is. */
function limitFor(one, rows) {
  const limits = rows.filter(({ role }) => role === 'limit')
  return limits.find(({ driver }) => driver === one.driver) ?? limits[0]
}

function addRatio(one, limit, headline) {
  if (limit === undefined) return
  const ratios = one.rounds.map((round, number) => round?.[headline] / limit.rounds[number]?.[headline])
  const found = spread(ratios)
  if (found !== undefined) one.summary.toRaw = found
}
