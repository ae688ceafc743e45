import { CONTESTANTS } from '../contestants/index.mjs'
import { WORKLOADS } from '../workloads/index.mjs'
import { unknownNames } from './args.mjs'

export const STORES = [
  'memory',
  'redis',
  'redlock',
  'mysql',
  'postgres',
  'sqlite',
  'memcached',
  'holdfast',
  'zookeeper',
]

/**
 * Who runs what.
 * @param {import('./args.mjs').Options} options
 */
export function makePlan(options) {
  refuse('store', unknownNames(options.stores, STORES))
  refuse(
    'workload',
    unknownNames(
      options.workloads,
      WORKLOADS.map(({ id }) => id),
    ),
  )
  refuse(
    'library',
    unknownNames(
      options.only,
      CONTESTANTS.map(({ family }) => family),
    ),
  )
  const stores = options.stores ?? STORES
  const workloads = WORKLOADS.filter(({ id }) => options.workloads?.includes(id) ?? true)
  const wanted = CONTESTANTS.filter(
    ({ store, family, role }) =>
      stores.includes(store) && (role === 'limit' || (options.only?.includes(family) ?? true)),
  )
  const here = wanted.filter((one) => one.missing === undefined)
  return {
    contestants: here,
    leftOut: leftOut(
      wanted.filter((one) => !here.includes(one)),
      here,
    ),
    bouts: workloads
      .flatMap((workload) => storesOf(workload, options).map((store) => bout(workload, store, here, options)))
      .filter(({ contestants }) => contestants.length > 0),
  }
}

/** On the other stores what matters are a few ratios: `elsewhere` in a plan may be shorter. `at` is for one of them. */
const FULLY_MEASURED = new Set(['memory', 'redis'])

/** In a hurry a workload may leave out a store where it cannot be short. */
const storesOf = ({ stores, plans }, { quick }) => (quick ? (plans.quick.stores ?? stores) : stores)

/**
 * One workload on one store.
 * @typedef {ReturnType<typeof bout>} Bout
 */
function bout(workload, store, contestants, { quick, rounds }) {
  const all = contestants.filter(
    (one) => one.store === store && (one.only?.includes(workload.id) ?? true) && workload.takes(one),
  )
  const { elsewhere, at, ...common } = quick ? workload.plans.quick : workload.plans.full
  const planned = { ...common, ...(FULLY_MEASURED.has(store) ? {} : elsewhere), ...at?.[store] }
  return {
    workload,
    store,
    plan: { ...planned, rounds: rounds ?? planned.rounds },
    contestants: quick ? inHurry(all).filter(workload.quickTakes ?? (() => true)) : all,
  }
}

/** In a hurry every peer is shown once, at its best, and nobody on a second driver. */
function inHurry(contestants) {
  const tuned = new Set(
    contestants.filter(({ waitingOnly, tuned }) => waitingOnly || tuned).map(({ family }) => family),
  )
  return contestants.filter(
    ({ role, family, waitingOnly, tuned: atBest, secondary }) =>
      !secondary && (role !== 'peer' || !tuned.has(family) || waitingOnly || atBest),
  )
}

/** A library that only lacks one of its stores is not missing. */
function leftOut(entries, here) {
  const elsewhere = new Set(here.map((one) => one.package))
  const reasons = new Map(
    entries.map(({ family, package: name, store, missing }) => [
      name === undefined || elsewhere.has(name) ? `${name ?? family} on ${store}` : name,
      missing,
    ]),
  )
  return [...reasons].map(([name, reason]) => ({ name, reason }))
}

function refuse(what, unknown) {
  if (unknown.length > 0) throw new Error(`no such ${what}: ${unknown.join(', ')} (see --list)`)
}
