// One process of a crowd: node crowd-member.mjs <dist> <present dist> <url> <label>, with CROWD_TASKS tasks that all want
// the same few locks, until its input ends. It writes down what it believes, one event a line.
import { setTimeout as sleep } from 'node:timers/promises'

const [, , dist, present, url, label] = process.argv
const { open } = await import(`${dist}/index.js`)
const { Recorder } = await import(`${present}/testkit/index.js`)

const NAMES = 5
const numbers = (_, value) => (typeof value === 'bigint' ? String(value) : value)
const recorder = new Recorder(label, {
  onEvent: (event) => process.stdout.write(`${JSON.stringify(event, numbers)}\n`),
})
const holdfast = await open(url, { ttl: 1_000, wait: 60_000 })

let over = false
async function task(at) {
  const name = `crowd:${at % NAMES}`
  while (!over) {
    const story = recorder.acquire(name, { weight: 1, capacity: 1 })
    const lease = await holdfast.mutex(name).acquire()
    story.acquired(lease)
    const lost = () => story.lost()
    lease.signal.addEventListener('abort', lost)
    await sleep(1)
    lease.signal.removeEventListener('abort', lost)
    story.check(lease)
    story.releasing()
    story.released(await lease.release())
  }
}

process.stdin.on('end', () => (over = true)).resume()
await Promise.all(Array.from({ length: Number(process.env.CROWD_TASKS) }, (_, at) => task(at)))
await holdfast.close()
