import { METRICS } from './metrics.mjs'
import { storeName } from './stores.mjs'

/** Wider than this, the rounds of one contestant disagree so much that the reader must know. */
const NOTABLE_SPREAD = 0.15

/**
 * A result as words. The first cell of a row is the name, and tells whether the library let two in at once.
 * @param {import('./summary.mjs').Result} result
 * @returns {{ head: string[], rows: { kind: string, cells: string[] }[] }}
 */
export function tableOf(result) {
  const columns = result.columns.filter((key) => isShown(key, result))
  return {
    head: ['', ...columns.map((key) => METRICS[key].label)],
    rows: inOrder(result).map((row) => ({
      kind: row.role,
      cells: [
        nameOf(row),
        ...columns.map((key) => cell(key, row.summary[key], key === result.headline || key === 'toRaw')),
      ],
    })),
  }
}

/** A column that nobody has a number for, or requests where there is no server, would only take room. */
const isShown = (key, { store, rows }) =>
  rows.some(({ summary }) => known(summary[key])) && !(key === 'requests' && store === 'memory')

const known = (value) => value !== undefined && !Number.isNaN(value.median)

/** The limit first, then us, then the peers, best first. */
function inOrder({ rows, headline }) {
  const place = { limit: 0, ours: 1, peer: 2 }
  const sign = METRICS[headline].better === 'more' ? -1 : 1
  const value = ({ summary }) => summary[headline]?.median ?? (sign === -1 ? 0 : Infinity)
  return [...rows].sort(
    (a, b) => place[a.role] - place[b.role] || (a.role === 'peer' ? sign * (value(a) - value(b)) : 0),
  )
}

/** A peer that loses updates is fast at something that is not locking. */
function nameOf({ label, summary, failures, ownStore }) {
  const wrong = (summary.lost?.median ?? 0) + (summary.overlaps?.median ?? 0)
  const marks = [
    ownStore ? '(not on this store)' : '',
    wrong > 0 ? '⚠ let two in at once' : '',
    failures?.length > 0 ? `⚠ failed ${failures.length} rounds` : '',
  ]
  return [label, ...marks.filter((mark) => mark !== '')].join(' ')
}

function cell(key, found, withSpread) {
  if (!known(found ?? { median: NaN })) return '–'
  const { write, total } = METRICS[key]
  const { median, min, max, rounds } = found
  const text = write(median)
  if (total || rounds < 2 || !withSpread) return text
  const wide = (max - min) / Math.abs(median) > NOTABLE_SPREAD
  return wide && Number.isFinite(max) ? `${text} (${write(min)} … ${write(max)})` : text
}

export const titleOf = ({ title, store, variantLabel }) =>
  [title, `on ${storeName(store)}`, variantLabel].filter((part) => part !== '').join(', ')
