// How often is the database asked for the product categories? 4 processes with 50 requests each, on a cold cache:
// node examples/cached-load.mjs [URL]     (a store that processes can share: redis://localhost:6379, postgres://…)
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { open } from 'holdfast'
import { cached } from 'holdfast/recipes'

const PROCESSES = 4
const REQUESTS = 50
const url = process.argv[2] ?? 'redis://localhost:6379'
const WAYS = { 'without a lock': null, 'with a lock in each process': 'memory:', 'with a lock for all': url }

if (process.send) await beOneOfFour()
else
  for (const way of Object.keys(WAYS)) console.log(`${way}: the database was asked ${await count(way)} times`)

/** This process is the database and the cache that the four others share. */
async function count(way) {
  let queries = 0
  const cache = new Map()
  const services = {
    get: (key) => cache.get(key),
    set: (key, text) => void cache.set(key, text),
    delete: (key) => cache.delete(key),
    async query() {
      queries++
      await sleep(300)
      return { 1: 'books', 2: 'music', 3: 'games' }
    },
  }
  const four = Array.from({ length: PROCESSES }, () => fork(import.meta.filename, [url]))
  await Promise.all(four.map((each) => once(each, 'message')))
  for (const each of four) {
    each.on('message', ([id, what, ...args]) => {
      Promise.resolve(services[what](...args)).then((answer) => each.send([id, answer]), console.error)
    })
    each.send(way)
  }
  await Promise.all(four.map((each) => once(each, 'exit')))
  return queries
}

async function beOneOfFour() {
  const answers = new Map()
  const ask = (...request) => {
    process.send([answers.size, ...request])
    return new Promise((resolve) => answers.set(answers.size, resolve))
  }
  process.send('ready')
  const [way] = await once(process, 'message')
  process.on('message', ([id, answer]) => answers.get(id)(answer))

  const cache = {
    get: (key) => ask('get', key),
    set: (key, text, ttl) => ask('set', key, text, ttl),
    delete: (key) => ask('delete', key),
  }
  const load = () => ask('query')
  let get = async () =>
    (await cache.get('categories')) ?? load().then((value) => cache.set('categories', value, 60_000))
  const holdfast = await open(WAYS[way] ?? 'memory:')
  if (WAYS[way] !== null) {
    const categories = cached(holdfast, { cache, key: 'categories', load, ttl: 60_000 })
    get = () => categories.get()
  }
  await Promise.all(Array.from({ length: REQUESTS }, () => get()))
  await holdfast.close()
  process.disconnect()
}
