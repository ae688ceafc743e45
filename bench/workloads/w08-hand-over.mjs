import { charged } from '../lib/charged.mjs'
import { monotonic, sleep } from '../lib/clock.mjs'
import { randomFrom } from '../lib/random.mjs'
import { tail } from '../lib/stats.mjs'
import { warmUp } from '../lib/warm-up.mjs'

const FILE = 'w08-hand-over.mjs'

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w8',
  title: 'Hand-over between two processes',
  about:
    'From the call of release in one process to the moment the other, which waits, has the lock. The raw limit is a ' +
    'bare PUBLISH from one process to the other, and a bare GET of the other one to see whether the message is true: ' +
    'from the call to the answer. The message alone, which proves nothing, has a column of its own.',
  stores: ['redis', 'mysql', 'postgres', 'sqlite'],
  plans: {
    // Who hands over once in 100 ms is not waiting for its own code to be compiled.
    full: {
      rounds: 1,
      ms: 1200,
      warmUp: 200,
      warmSections: 1000,
      warmUpMost: 1500,
      elsewhere: { rounds: 1, ms: 600 },
    },
    quick: { rounds: 1, ms: 500, warmUp: 100, stores: ['redis'] },
  },
  variants: () => [{ id: 'pair', label: '' }],
  // Only Redis has messages that could be sent bare.
  takes: ({ secondary, family, role, store }) =>
    !secondary && family !== 'proper-lockfile' && (role !== 'limit' || store === 'redis'),
  headline: 'p50',
  columns: ['p50', 'toRaw', 'message', 'p99', 'max', 'handOvers', 'requests', 'errors'],
  async round(stage, contestant, plan) {
    const crew = await stage.crew(contestant, 2)
    const pass = contestant.role === 'limit' ? publish : handOver
    try {
      const name = stage.name()
      await Promise.all(
        crew.map((subject, number) => subject.run(FILE, 'prepare', { name: `${name}:${number}` })),
      )
      if (pass === handOver) await crew[0].run(FILE, 'take', { name })
      // Without pauses: with them, a second of warming up is a hundred hand-overs, and what is measured is how V8 reads our code.
      await warmUp(plan, async (ms) => {
        const { list } = await passOn(pass, crew, name, { ms, pause: noPause })
        return { done: list.length }
      })
      const [times] = await charged(stage, contestant, () =>
        passOn(pass, crew, name, { ms: plan.ms, pause: randomPause() }),
      )
      const { list, messages, errors } = times
      const message = messages.length === 0 ? {} : { message: tail(messages).p50 }
      return { pair: { ...tail(list), ...message, handOvers: list.length, errors } }
    } finally {
      await Promise.all(crew.map((subject) => subject.close()))
    }
  },
}

const noPause = () => 0

/** A pause before each is random, or it would fall into step with libraries that poll. */
function randomPause() {
  const random = randomFrom(1)
  return () => 2 + random() * 10
}

/** To and fro. */
async function passOn(pass, crew, name, { ms, pause }) {
  const list = []
  const messages = []
  let errors = 0
  const end = monotonic() + ms
  while (monotonic() < end) {
    try {
      const { all, message } = await pass(crew, name, pause())
      list.push(all)
      if (message !== undefined) messages.push(message)
      crew.reverse()
    } catch {
      errors++
    }
  }
  return { list, messages, errors }
}

async function handOver([holder, waiter], name, pause) {
  await waiter.run(FILE, 'ask', { name })
  await sleep(pause)
  const [given, got] = await Promise.all([holder.run(FILE, 'give'), waiter.run(FILE, 'got')])
  return { all: got - given }
}

async function publish([from, to], _name, pause) {
  await sleep(pause)
  const { channel } = await to.run(FILE, 'listen')
  const [sent, came] = await Promise.all([from.run(FILE, 'publish', { channel }), to.run(FILE, 'came')])
  return { all: came.answered - sent, message: came.heard - sent }
}

let held
let asked
let message
let ear

export const steps = {
  async prepare(session, { name }) {
    if (session.signals === undefined) return
    ear = { channel: name, heard: () => {} }
    await session.signals.listen(name, () => ear.heard(monotonic()))
  },
  async take(session, { name }) {
    const lock = session.lock(name)
    held = { lock, lease: await lock.acquire() }
  },
  async ask(session, { name }) {
    const lock = session.lock(name)
    asked = lock.acquire().then(
      (lease) => {
        const moment = monotonic()
        held = { lock, lease }
        return { moment }
      },
      (error) => ({ error }),
    )
  },
  async got(_session, _params) {
    const { moment, error } = await asked
    if (error !== undefined) throw error
    return moment
  },
  async give() {
    const moment = monotonic()
    await held.lock.release(held.lease)
    return moment
  },
  async listen(session) {
    message = new Promise((resolve, reject) => {
      ear.heard = (heard) =>
        session.signals.ask(ear.channel).then(() => resolve({ heard, answered: monotonic() }), reject)
    })
    message.catch(() => {})
    return { channel: ear.channel }
  },
  async publish(session, { channel }) {
    const moment = monotonic()
    await session.signals.send(channel)
    return moment
  },
  came: () => message,
}
