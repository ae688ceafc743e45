import { parseArgs } from 'node:util'

export const USAGE = `npm run bench -- [options]

  --store memory,redis     which stores (default: all that are built): memory, redis, mysql, postgres, sqlite,
                           memcached, holdfast (the lock server), zookeeper
  --workload w1,w4         which workloads (default: all)
  --only holdfast,redlock  which libraries; the raw limit always runs along
  --quick                  fewer and shorter rounds: under two minutes, for a first look
  --rounds 9               how often, instead of what each workload plans
  --seed 7                 order of the rounds (default: from the clock; printed and recorded)
  --json out.json          where to write the results (always also bench/results/local/last.json)
  --html out.html          one page with tables and plots
  --check                  compare ratios with bench/targets.json; the exit code tells
  --profile                CPU profiles of holdfast (or of what --only names) instead of a comparison
  --list                   show workloads and contestants
`

const list = (text) =>
  text
    ?.split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')

function whole(name, text) {
  if (text === undefined) return undefined
  if (!/^\d+$/.test(text)) throw new Error(`--${name} wants a whole number, not ${text}`)
  return Number(text)
}

/** @typedef {ReturnType<typeof readArgs>} Options */

/** @param {string[]} argv */
export function readArgs(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      store: { type: 'string' },
      workload: { type: 'string' },
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seed: { type: 'string' },
      json: { type: 'string' },
      html: { type: 'string' },
      check: { type: 'boolean', default: false },
      profile: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const seed = whole('seed', values.seed) ?? Date.now() % 1_000_000
  const rounds = whole('rounds', values.rounds)
  return {
    ...values,
    seed,
    rounds,
    stores: list(values.store),
    workloads: list(values.workload),
    only: list(values.only),
  }
}

/** Names in `wanted` that nothing here is called. A typing error must not look like an empty result. */
export function unknownNames(wanted, known) {
  return (wanted ?? []).filter((name) => !known.includes(name))
}
