import { METRICS } from './metrics.mjs'

/** The variants of a workload as rows of one table: there is one contestant, and what counts is how it goes on. */
export function stripesTable({ results }, store) {
  const variants = results.filter(
    (one) => one.workload === 'w14' && one.store === store && one.rows.length > 0,
  )
  if (variants.length === 0) throw new Error(`the results have no stock on ${store}`)
  const columns = variants[0].columns
  return {
    head: ['', ...columns.map((key) => METRICS[key].label)],
    rows: variants.map(({ variantLabel, rows: [row] }) => ({
      kind: 'ours',
      cells: [variantLabel, ...columns.map((key) => METRICS[key].write(row.summary[key].median))],
    })),
  }
}
