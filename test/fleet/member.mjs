// One process of a fleet, with the build that it is told to use: node member.mjs <dist> <present dist> <url> <label>
// It fights for three locks until its input ends, and writes down what it believes, one event a line.
import { setTimeout as sleep } from 'node:timers/promises'

const [, , dist, present, url, label] = process.argv
const { open } = await import(`${dist}/index.js`)
// The capacity of a read-write lock, in every build.
const ALL = 2 ** 31 - 1
const { Recorder } = await import(`${present}/testkit/index.js`)

const TTL_MS = 2_000
const numbers = (_, value) => (typeof value === 'bigint' ? String(value) : value)
const recorder = new Recorder(label, {
  onEvent: (event) => process.stdout.write(`${JSON.stringify(event, numbers)}\n`),
})
const holdfast = await open(url, { ttl: TTL_MS, patience: 1_500, wait: 30_000 })

const anyOf = (choices) => choices[Math.floor(Math.random() * choices.length)]
const mutex = { lock: holdfast.mutex('fleet:mutex'), name: 'fleet:mutex', weight: 1, capacity: 1 }
const locks = [[mutex]]
// A quorum has mutexes only.
if (!url.startsWith('redlock:')) {
  const { read, write } = holdfast.readWriteLock('fleet:read-write')
  const permits = holdfast.semaphore('fleet:permits', 2)
  locks.push(
    [
      { lock: read, name: 'fleet:read-write', weight: 1, capacity: ALL },
      { lock: write, name: 'fleet:read-write', weight: ALL, capacity: ALL },
    ],
    [{ lock: permits, name: 'fleet:permits', weight: 1, capacity: 2 }],
  )
}

let over = false
async function fight(choices) {
  while (!over) {
    const { lock, name, weight, capacity } = anyOf(choices)
    const story = recorder.acquire(name, { weight, capacity })
    const lease = await lock.acquire().catch(() => null)
    if (lease === null) {
      story.failed()
      continue
    }
    story.acquired(lease)
    const lost = () => story.lost()
    lease.signal.addEventListener('abort', lost)
    // Now and then for longer than a lease lasts without a renewal.
    await sleep(Math.random() < 0.05 ? TTL_MS * 1.3 : 1 + Math.random() * 20)
    lease.signal.removeEventListener('abort', lost)
    story.check(lease)
    story.releasing()
    story.released(await lease.release())
  }
}

process.stdin.on('end', () => (over = true)).resume()
await Promise.all(locks.map(fight))
await holdfast.close()
