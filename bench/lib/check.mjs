import { readFileSync } from 'node:fs'

import { METRICS } from '../report/metrics.mjs'

const FILE = new URL('../targets.json', import.meta.url)

export const readTargets = () => JSON.parse(readFileSync(FILE, 'utf8')).targets

/**
 * What has to hold. Ratios only, or counts that do not depend on how fast a machine is.
 * @typedef {object} Target
 * @property {string} say
 * @property {string} workload
 * @property {string} store
 * @property {string} variant
 * @property {string} ours id of the contestant
 * @property {string} metric
 * @property {string} [against] `raw`, `best peer`, or the id of a contestant; nothing: the number itself
 * @property {boolean} [aboveRaw] what it is above the raw limit, not how many times: the limit is a process that does nothing
 * @property {number} [atLeast]
 * @property {number} [atMost]
 * @property {number} margin what noise may take off: 0.1 is a tenth
 *
 * @typedef {'met' | 'within noise' | 'missed' | 'not run'} Verdict
 */

/** @returns {{ verdict: Verdict, value: number | undefined }} */
export function judge(target, results) {
  const value = valueOf(target, results)
  if (value === undefined || Number.isNaN(value)) return { verdict: 'not run', value: undefined }
  const { atLeast = -Infinity, atMost = Infinity, margin } = target
  if (value >= atLeast && value <= atMost) return { verdict: 'met', value }
  const close = value >= atLeast * (1 - margin) && value <= atMost * (1 + margin)
  return { verdict: close ? 'within noise' : 'missed', value }
}

function valueOf({ workload, store, variant, ours, metric, against, aboveRaw }, results) {
  const result = results.find(
    (one) => one.workload === workload && one.store === store && one.variant === variant,
  )
  const mine = result?.rows.find(({ id }) => id === ours)
  if (mine === undefined) return undefined
  if (against === 'raw' && metric === result.headline) return mine.summary.toRaw?.median
  const number = mine.summary[metric]?.median
  const limit = result.rows.find(({ role }) => role === 'limit')
  if (aboveRaw === true) return limit === undefined ? undefined : number - limit.summary[metric].median
  if (against === undefined) return number
  const other = against === 'raw' ? limit : rival(result, metric, against)
  return other === undefined ? undefined : number / other.summary[metric].median
}

/** The best peer is the best of those that kept their promise on the same store. */
function rival({ rows }, metric, against) {
  if (against !== 'best peer') return rows.find(({ id }) => id === against)
  const honest = rows.filter(
    ({ role, ownStore, summary }) =>
      role === 'peer' &&
      !ownStore &&
      summary[metric] !== undefined &&
      !summary.lost?.median &&
      !summary.overlaps?.median,
  )
  const sign = METRICS[metric].better === 'more' ? -1 : 1
  return honest.sort((a, b) => sign * (a.summary[metric].median - b.summary[metric].median))[0]
}

/** @param {readonly Target[]} targets */
export function checkTargets(targets, { results }) {
  const judged = targets.map((target) => ({ target, ...judge(target, results) }))
  return {
    table: {
      head: ['', 'wanted', 'found', 'verdict'],
      rows: judged.map(({ target, verdict, value }) => ({
        kind: verdict,
        cells: [target.say, wanted(target), value === undefined ? '–' : written(target, value), verdict],
      })),
    },
    missed: judged.filter(({ verdict }) => verdict === 'missed').length,
  }
}

const written = ({ metric, against }, value) =>
  against === undefined ? METRICS[metric].write(value) : METRICS.toRaw.write(value)

const wanted = (target) =>
  [
    target.atLeast === undefined ? '' : `≥ ${written(target, target.atLeast)}`,
    target.atMost === undefined ? '' : `≤ ${written(target, target.atMost)}`,
  ].join('')
