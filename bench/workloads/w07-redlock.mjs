// The place of the Redlock comparison: five servers, all well, and with one of them stopped. It is filled when there
// is a store of ours to stand in it; until then the benchmark says that it was not run instead of leaving it out.

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w7',
  title: 'Redlock on five servers, healthy and with one stopped',
  stores: ['redlock'],
  notRun: 'holdfast has no Redlock store yet',
  plans: { full: { rounds: 0, ms: 0, warmUp: 0 }, quick: { rounds: 0, ms: 0, warmUp: 0 } },
  variants: () => [],
  takes: () => false,
  headline: 'rate',
  columns: ['rate', 'toRaw', 'p50', 'p99', 'max'],
  round: async () => ({}),
}

export const steps = {}
