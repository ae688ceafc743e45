import { summarise } from '../report/summary.mjs'

const workload = {
  id: 'w1',
  title: 'A workload',
  headline: 'rate',
  columns: ['rate', 'toRaw', 'lost'],
  variants: () => [{ id: 'alone', label: '' }],
}

/** A result as a run would make it, from rates by contestant and round. */
export function resultWith(contestants) {
  const entries = Object.entries(contestants)
  const bout = {
    workload,
    store: 'redis',
    plan: {},
    contestants: entries.map(([id, { role, ownStore }]) => ({ id, label: id, role, ownStore })),
  }
  const rounds = new Map(
    entries.map(([id, { rates, lost = 0 }]) => [id, rates.map((rate) => ({ alone: { rate, lost } }))]),
  )
  return summarise(bout, rounds)[0]
}
