// One process of a fleet, for recipes.test.ts: takes its task as JSON, prints one JSON value per line.
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

import { Redis } from 'ioredis'

import { open } from '../../dist/open.js'
import { cached, leader, once, redisCache, stripedStock } from '../../dist/recipes/index.js'
import { fencedWrite } from '../../dist/stores/redis/index.js'

const { recipe, url, data, ...task } = JSON.parse(process.argv[2])
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`)
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const told = async () => (await lines.next()).value

const redis = new Redis(data)
const holdfast = await open(url, { ttl: task.ttl ?? 1000 })

const recipes = {
  /** Loads on demand; the database counts how often it is asked. */
  async cached() {
    const value = cached(holdfast, {
      cache: redisCache(redis),
      key: 'categories',
      async load() {
        await redis.incr('queries')
        say('loading')
        await sleep(task.loadMs)
        return task.value
      },
      ttl: 60_000,
    })
    say('ready')
    await told()
    const values = await Promise.all(Array.from({ length: task.requests }, () => value.get()))
    say([...new Set(values)])
  },

  /** Notes when it believes to lead, until it is told to stop. */
  async leader() {
    const candidate = leader(holdfast, 'boss', {
      async onElected(signal, term) {
        const believed = { token: String(term.token), from: Date.now(), to: Date.now(), ended: '' }
        say('elected')
        while (!signal.aborted) {
          await sleep(5)
          try {
            term.assertHeld()
            believed.to = Date.now()
          } catch {
            break
          }
        }
        believed.ended = signal.reason?.code ?? signal.reason?.name ?? 'by the clock'
        say(believed)
      },
    })
    say('ready')
    await told()
    await candidate.stop()
  },

  async once() {
    const job = once(holdfast, 'report', {
      every: 60_000,
      ...(task.memory ? { memory: redisCache(redis) } : {}),
      async run() {
        say('running')
        await sleep(task.jobMs)
        return task.value
      },
    })
    say('ready')
    await told()
    const { kind, result, last } = await job.tick()
    say({ kind, result, last: last?.outcome })
  },

  async stock() {
    const storage = {
      read: async (segment) => Number(await redis.get(`left:${segment}`)),
      async write(segment, left, token) {
        const key = `left:${segment}`
        return (await fencedWrite(redis, { key, value: String(left), token })).accepted
      },
    }
    const stock = stripedStock(holdfast, 'tickets', { segments: task.segments, storage })
    if (task.fill !== undefined) await stock.fill(task.fill)
    say('ready')
    await told()
    const taken = await Promise.all(Array.from({ length: task.customers }, () => stock.take()))
    say(taken.flatMap((each) => each?.parts.map(({ segment, left }) => `${segment}/${left}`) ?? []))
  },
}

await recipes[recipe]()
await holdfast.close()
redis.disconnect()
process.stdin.destroy()
