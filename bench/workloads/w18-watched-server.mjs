import { Agent, get, request } from 'node:http'

import { charged } from '../lib/charged.mjs'
import { measured } from '../lib/measured.mjs'
import { warmUp } from '../lib/warm-up.mjs'
import { pairMetrics } from './w01-sequential.mjs'
import { steps as manyNames } from './w02-many-names.mjs'

const FILE = 'w18-watched-server.mjs'
const STREAMS = 400
const NAMES = 64

/** @type {import('./index.mjs').Workload} */
export const workload = {
  id: 'w18',
  title: `The lock server while ${STREAMS} streams follow its events, and over HTTP`,
  about:
    `${NAMES} names at once on one session: first alone, then while another process follows everything that happens in ` +
    `${STREAMS} event streams. Beside it the same over HTTP: ${NAMES} connections that stay, a request for each acquire and each release.`,
  stores: ['holdfast'],
  plans: {
    full: { rounds: 7, ms: 600, warmUp: 1500 },
    quick: { rounds: 1, ms: 200, warmUp: 300, stores: [] },
  },
  variants: () => [
    { id: 'alone', label: 'nobody watches' },
    { id: 'watched', label: `${STREAMS} event streams` },
    { id: 'http', label: 'over HTTP' },
  ],
  takes: ({ family, waitingOnly }) => family === 'holdfast' && !waitingOnly,
  headline: 'rate',
  columns: ['rate', 'keeps', 'p50', 'p99', 'clientCpu', 'serverCpu', 'errors'],
  async round(stage, contestant, plan) {
    const http = stage.endpoint.urls.holdfast.replace(/^holdfast/, 'http')
    const params = { name: stage.name(), size: NAMES, stride: 1, ms: plan.ms, http }
    const subject = await stage.subject(contestant, async (fresh) => {
      await warmUp(plan, (ms) => fresh.run(FILE, 'session', { ...params, ms }))
      await warmUp(plan, (ms) => fresh.run(FILE, 'http', { ...params, ms }))
    })
    const slice = async (step) => {
      const [run, server] = await charged(stage, contestant, () => subject.run(FILE, step, params))
      return pairMetrics(run, server)
    }
    const alone = await slice('session')
    const [watcher] = await stage.crew(contestant, 1)
    let watched
    try {
      await watcher.run(FILE, 'watch', { http })
      watched = await slice('session')
      const { heard } = await watcher.run(FILE, 'heard')
      // Streams that nothing goes out on would cost nothing.
      if (heard < STREAMS) throw new Error(`only ${heard} of ${STREAMS} event streams heard anything`)
    } finally {
      await watcher.close()
    }
    const over = await slice('http')
    const keeps = (one) => ({ ...one, keeps: one.rate / alone.rate })
    return { alone: keeps(alone), watched: keeps(watched), http: keeps(over) }
  },
}

let heardBy = new Set()

export const steps = {
  session: (session, params) => manyNames.loops(session, params),

  async watch(_session, { http }) {
    const agent = new Agent({ maxSockets: Infinity })
    heardBy = new Set()
    const follow = (index) =>
      new Promise((resolve, reject) => {
        get(`${http}/v1/events`, { agent }, (response) => {
          response.once('data', () => {
            resolve()
            response.on('data', () => heardBy.add(index))
          })
        }).on('error', reject)
      })
    await Promise.all(Array.from({ length: STREAMS }, (_, index) => follow(index)))
  },
  heard: async () => ({ heard: heardBy.size }),

  async http(_session, { name, size, ms, http }) {
    const agent = new Agent({ keepAlive: true, maxSockets: size })
    const loops = Array.from({ length: size }, (_, number) => httpPairs(agent, http, `${name}:${number}`))
    await Promise.all(loops.map((pair) => pair()))
    return measured(async () => {
      const end = performance.now() + ms
      const times = []
      const loop = async (pair) => {
        for (let began = performance.now(); began < end; began = performance.now()) {
          await pair()
          times.push(performance.now() - began)
        }
      }
      await Promise.all(loops.map(loop))
      agent.destroy()
      return { done: times.length, errors: 0, times: Float64Array.from(times) }
    })
  },
}

function httpPairs(agent, http, name) {
  const post = (path, body) =>
    new Promise((resolve, reject) => {
      const text = JSON.stringify(body)
      const headers = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        'holdfast-request': '1',
      }
      const sent = request(`${http}/v1/${path}`, { agent, method: 'POST', headers }, (response) => {
        let received = ''
        response.setEncoding('utf8')
        response.on('data', (chunk) => (received += chunk))
        response.on('end', () =>
          response.statusCode === 200 ? resolve(JSON.parse(received)) : reject(new Error(received)),
        )
      })
      sent.on('error', reject)
      sent.end(text)
    })
  return async () => {
    const { lease } = await post('acquire', { name })
    await post('release', { name, lease })
  }
}
