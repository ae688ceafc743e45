// Many seeds of every simulated scenario; a failure is shrunk to the shortest list of faults that still shows it.
import { explain, scenarios, shrink, survey } from '../dist/lab/sim/index.js'

const EVERY = 20
/** Always the same ones: what was once seen to hold must not break later. The others are fresh. */
const FIXED = Array.from({ length: 5 }, (_, index) => index + 1)

/** One task a scenario; `seeds` is how many fresh runs there are in all. */
export function simulationTasks({ seeds, seed }) {
  const each = Math.ceil(seeds / scenarios.length)
  return scenarios.map((scenario) => ({
    id: `sim/${scenario.id}`,
    title: `simulation: ${scenario.title}`,
    run: async (say) => {
      const onProgress = ({ done, of }) => done % EVERY === 0 && say(`seed ${done} of ${of}`)
      const options = { seeds: each, firstSeed: seed, fixed: FIXED, scenarios: [scenario] }
      const [row] = await survey({ ...options, onProgress })
      return recordOf(row, seed)
    },
  }))
}

/** The example's picture with the verdicts of all seeds. What only a replay needs stays out of the report. */
async function recordOf({ scenario, runs, distinct, verdicts, example, unexpected }, seed) {
  const { hash: _hash, log: _log, plan: _plan, ...run } = example
  const shortest = await shortestOf(scenario, unexpected[0])
  return {
    ...run,
    id: `sim/${scenario.id}`,
    title: `Simulation, ${scenario.title} (${runs} seeds, ${distinct} unlike each other)`,
    about: `${FIXED.length} of the seeds are always the same, the others begin with ${seed}; drawn is seed ${example.seed}.`,
    store: `simulated ${scenario.store}`,
    fault: scenario.id.split('/').slice(1).join('/'),
    verdicts: verdicts.map((verdict) =>
      verdict.check === shortest?.check ? { ...verdict, why: `${verdict.why}. ${shortest.words}` } : verdict,
    ),
  }
}

async function shortestOf(scenario, run) {
  const broken = run?.verdicts.find(({ expected, seen }) => expected === 'holds' && seen === 'broke')
  if (broken === undefined) return undefined
  const { check } = broken
  const shrunk = await shrink({ scenario, seed: run.seed, faults: run.plan }, check)
  return { check, words: explain(shrunk) }
}
