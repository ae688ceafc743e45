import { HoldfastError } from '../../../src/index.ts'
import { cached, leader, once, stripedStock } from '../../../src/recipes/index.ts'
import type { Process, World } from '../runtime/far-store.ts'
import { SharedFencedCache } from './kit.ts'
import { Shelf } from './shelf.ts'

/** What a recipe does while it is ended from outside. */
export interface Course {
  /** Settles when the recipe has come to its end. */
  readonly done: Promise<unknown>
  /** The recipe's own way to end it, if it has one. */
  readonly stop?: () => Promise<unknown>
  /** What must hold afterwards, in words if it does not. */
  readonly check?: () => string | null
}

export interface Recipe {
  /** The locks that it uses. */
  readonly names: readonly string[]
  /** `begins`: to be called when the user's own code begins. */
  readonly start: (world: World, process: Process, begins: () => void) => Course
}

export const LATENCY = 10
const WORK = 15

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

function slowCache({ env }: World): SharedFencedCache {
  const cache = new SharedFencedCache(env)
  cache.latency = 7
  return cache
}

export const recipes: Readonly<Record<string, Recipe>> = {
  leader: {
    names: ['office'],
    start(_, { holdfast, env }, begins) {
      const candidate = leader(holdfast, 'office', {
        async onElected(signal) {
          begins()
          await untilAborted(signal)
          await env.sleep(WORK)
        },
        env,
      })
      return { done: Promise.resolve(), stop: () => candidate.stop() }
    },
  },

  'leader that stops itself': {
    names: ['office'],
    start(_, { holdfast, env }, begins) {
      const candidate = leader(holdfast, 'office', {
        async onElected() {
          begins()
          await env.sleep(WORK)
          await candidate.stop()
        },
        env,
      })
      return { done: Promise.resolve(), stop: () => candidate.stop() }
    },
  },

  once: {
    names: ['report', 'report:ran'],
    start(_, { holdfast, env }, begins) {
      const run = async (): Promise<void> => (begins(), await env.sleep(WORK))
      const job = once(holdfast, 'report', { atLeast: 30_000, run, env })
      return { done: job.tick() }
    },
  },

  'once that fails and is to be run again': {
    names: ['report', 'report:ran'],
    start(_, { holdfast, env }, begins) {
      const run = async (): Promise<void> => {
        begins()
        await env.sleep(WORK)
        throw new HoldfastError('CONFLICT', 'no paper')
      }
      const job = once(holdfast, 'report', { atLeast: 30_000, afterFailure: 'retry', run, env })
      return { done: job.tick() }
    },
  },

  cached: {
    names: ['cache:k'],
    start(world, { holdfast, env }, begins) {
      const controller = new AbortController()
      const load = async (): Promise<string> => (begins(), await env.sleep(WORK), 'v')
      const each = cached(holdfast, { cache: slowCache(world), key: 'k', load, ttl: 5000, env })
      const { signal } = controller
      const stop = (): Promise<void> => Promise.resolve(controller.abort())
      return { done: each.get(undefined, { signal }), stop }
    },
  },

  'cached with a refresh': {
    names: ['cache:k'],
    start(world, { holdfast, env }, begins) {
      const cache = slowCache(world)
      const load = async (): Promise<string> => (begins(), await env.sleep(WORK), 'v')
      const each = cached(holdfast, { cache, key: 'k', load, ttl: 5000, refreshAfter: 1, env })
      const get = async (): Promise<string> => {
        await cache.setFenced('k', 'v1:"old"', { ttl: 5000, token: 1n })
        return each.get()
      }
      return { done: get() }
    },
  },

  'striped stock': {
    names: ['seats#0', 'seats#1', 'seats#2'],
    start(world, { holdfast, env }, begins) {
      const shelf = new Shelf(world.env, [0, 0, 3])
      shelf.latency = () => 5
      const controller = new AbortController()
      const { signal } = controller
      const stock = stripedStock(holdfast, 'seats', { segments: 3, storage: shelf, env })
      // What it takes is taken: it may write after its Holdfast was told to close, and then the buyer has it.
      let sold = 0
      const done = stock.take(2, { signal }).then((taken) => (sold = taken?.quantity ?? 0))
      const check = (): string | null =>
        shelf.total + sold === 3 ? null : `${shelf.total} are left and ${sold} were sold, of 3`
      begins()
      const stop = (): Promise<void> => Promise.resolve(controller.abort())
      return { done, stop, check }
    },
  },
}
