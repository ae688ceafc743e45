import { METRICS } from './metrics.mjs'

/** One table for a whole series: a line for each size, a column for each contestant. */
export function growthTables(results) {
  const groups = Map.groupBy === undefined ? groupBy(results) : Map.groupBy(results, keyOf)
  return [...groups.values()].map((steps) => {
    const ids = [...new Map(steps.flatMap(({ rows }) => rows.map(({ id, label }) => [id, label])))]
    return {
      title: `${steps[0].title}, on ${steps[0].store}: ${steps[0].seriesLabel}`,
      store: steps[0].store,
      series: steps[0].series,
      table: {
        head: [METRICS.cost.label, ...ids.map(([, label]) => label)],
        rows: steps.map(({ x, rows }) => ({
          kind: 'step',
          cells: [x.toLocaleString('en'), ...ids.map(([id]) => written(rows.find((row) => row.id === id)))],
        })),
      },
    }
  })
}

const written = (row) => (row?.summary.cost === undefined ? '–' : METRICS.cost.write(row.summary.cost.median))

const keyOf = ({ store, series }) => `${store} ${series}`

/** Node 20 has no Map.groupBy yet. */
function groupBy(results) {
  const groups = new Map()
  for (const one of results) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one])
  return groups
}
