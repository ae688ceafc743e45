import { loadContestant } from '../contestants/load.mjs'
import { Subject } from '../lib/crew.mjs'
import { quantile, tail } from '../lib/stats.mjs'

const FILE = 'w17-split-votes.mjs'
const CLIENTS = 3

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w17',
  title: 'Redlock on three servers, votes that split',
  about:
    'Three clients, in one process, ask for a fresh name in the same moment, and each releases it at once. Each reaches ' +
    'another server first: what it sends to the other two is kept back until all three have the vote of their own. From ' +
    'then on nothing is kept back.',
  stores: ['redlock'],
  plans: {
    full: { rounds: 1, ms: 3000, warmUp: 500 },
    quick: { rounds: 1, ms: 1000, warmUp: 200, stores: [] },
  },
  variants: () => [
    { id: 'one', label: 'until one holds it' },
    { id: 'all', label: 'until all three have had it' },
  ],
  takes: ({ attempts }) => attempts === 'counted',
  headline: 'p50',
  columns: ['p50', 'p90', 'p99', 'max', 'split', 'attempts', 'races', 'errors'],
  async round(stage, contestant, plan) {
    const { urls, ...rest } = stage.endpoint
    const endpoint = {
      ...rest,
      urls: { ...urls, redlock: urls.redlock.split(',').slice(0, CLIENTS).join(',') },
    }
    const subject = await Subject.open(contestant, endpoint)
    try {
      await subject.run(FILE, 'join', { file: contestant.file, id: contestant.id, endpoint })
      await subject.run(FILE, 'warmUp', { name: stage.name(), ms: plan.warmUp })
      return metricsOf(await subject.run(FILE, 'races', { name: stage.name(), ms: plan.ms }))
    } finally {
      await subject.run(FILE, 'leave').catch(() => {})
      await subject.close()
    }
  },
}

/** Times of those that got it; who gave up is an error. */
export function metricsOf({ races }) {
  const errors = races.reduce((sum, { lost }) => sum + lost, 0)
  const won = races.filter(({ one }) => one !== undefined)
  const common = {
    split: won.filter(({ winner }) => winner > 1).length / won.length,
    races: races.length,
    errors,
  }
  return {
    one: {
      ...common,
      ...distribution(won.map(({ one }) => one)),
      attempts: mean(won.map(({ winner }) => winner)),
    },
    all: {
      ...common,
      ...distribution(races.filter(({ lost }) => lost === 0).map(({ all }) => all)),
      attempts: mean(won.map(({ attempts }) => attempts)),
    },
  }
}

const distribution = (times) => ({ ...tail(times), p90: quantile(Float64Array.from(times).sort(), 0.9) })
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length

let more = []
let gate

export const steps = {
  async join(session, { file, id, endpoint }) {
    const { open } = await loadContestant(file, id)
    more = await Promise.all(Array.from({ length: CLIENTS - 1 }, () => open(endpoint)))
    gate = new Gate()
    for (const [number, one] of [session, ...more].entries()) {
      for (const [place, connection] of one.connections.entries()) gate.stand(connection, place === number)
    }
  },
  /** Each by itself: a race may take seconds. */
  async warmUp(session, { name, ms }) {
    const end = performance.now() + ms
    const alone = async (client, number) => {
      const lock = client.lock(`${name}:${number}`)
      while (performance.now() < end) {
        const held = await lock.acquire()
        client.attemptsOf(held)
        await lock.release(held)
      }
    }
    await Promise.all([session, ...more].map(alone))
  },
  async races(session, { name, ms }) {
    const races = []
    const end = performance.now() + ms
    while (performance.now() < end) races.push(await race([session, ...more], `${name}:${races.length}`))
    return { races }
  },
  async leave() {
    await Promise.all(more.splice(0).map((session) => session.close()))
  },
}

async function race(clients, name) {
  const locks = clients.map((client) => client.lock(name))
  gate.close()
  const began = performance.now()
  const outcomes = await Promise.allSettled(
    locks.map(async (lock, client) => {
      const held = await lock.acquire()
      const took = performance.now() - began
      const attempts = clients[client].attemptsOf(held)
      await lock.release(held)
      return { took, attempts }
    }),
  )
  const won = outcomes.flatMap(({ value }) => value ?? []).sort((a, b) => a.took - b.took)
  return {
    one: won[0]?.took,
    all: won.at(-1)?.took,
    winner: won[0]?.attempts,
    attempts: won.reduce((sum, { attempts }) => sum + attempts, 0),
    lost: clients.length - won.length,
  }
}

/** Between the clients and the servers. While it is closed, only what goes to a client's own server passes. */
class Gate {
  #own = []
  /** Connections to a client's own server from which no answer has come since the gate was closed. */
  #missing = new Set()
  #kept = []

  close() {
    this.#missing = new Set(this.#own)
  }

  stand(connection, own) {
    if (own) this.#own.push(connection)
    const send = connection.sendCommand.bind(connection)
    connection.sendCommand = (command, ...rest) => {
      if (this.#missing.size === 0) return send(command, ...rest)
      if (own) {
        command.promise.finally(() => this.#answered(connection)).catch(() => {})
        return send(command, ...rest)
      }
      this.#kept.push(() => send(command, ...rest))
      return command.promise
    }
  }

  #answered(connection) {
    this.#missing.delete(connection)
    if (this.#missing.size === 0) for (const pass of this.#kept.splice(0)) pass()
  }
}
