import { connect } from 'node:net'

import { expect, it } from 'vitest'

import type { RenewAnswer, Store } from '../../../src/core/contract.ts'
import { Load } from '../../../src/server/load.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { afterwards, call, eventually, portOf, serve, take } from '../helpers.ts'
import { openSession, upgrade } from './session.ts'
import { victim } from './victim.ts'

/** A line of a hundred renewals is a hundred requests: what the store has not answered yet is counted in those. */

const list = Array.from({ length: 100 }, (_, index) => {
  return { name: `n${index}`, id: `s.${index}`, ttl: 1000, patience: 1000, tokens: 0 }
})
const lines = (count: number): string =>
  Array.from({ length: count }, (_, index) => `${JSON.stringify([index + 1, 'renew', list, 30_000])}\n`).join(
    '',
  )

/** Keeps renewals until they are let go. */
function holding(): { store: Store; kept: () => number; letGo: () => void } {
  const inner = memoryStore()
  let kept = 0
  let waiting: (() => void)[] = []
  const renew: Store['renew'] = async (requests) => {
    kept += requests.length
    await new Promise<void>((resolve) => waiting.push(resolve))
    kept -= requests.length
    return requests.map((): RenewAnswer => ({ kind: 'lost' }))
  }
  const letGo = (): void => {
    const all = waiting
    waiting = []
    for (const go of all) go()
  }
  const store = new Proxy(inner, {
    get: (target, key) => {
      if (key === 'renew') return renew
      const value = Reflect.get(target, key) as unknown
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return { store, kept: () => kept, letGo }
}

it('has at most ten thousand renewals of one session under way, and does the others later', async () => {
  const { store, kept, letGo } = holding()
  const server = await serve({ store })
  const session = await openSession(server)
  let answered = 0
  session.socket.on('data', (text: string) => (answered += text.split('\n').length - 1))
  session.socket.write(lines(300))
  await eventually('they are under way', () => kept() >= 5000)
  // Another session's answer comes later than all that was going to be read.
  await (await openSession(server)).ask('ping', null)
  await new Promise((resolve) => void setTimeout(resolve, 200))
  expect(kept()).toBe(10_000)
  await eventually('all are answered', () => {
    letGo()
    return answered === 300
  })
})

it('survives more renewals than it has memory for, of many sessions, in front of a slow store', async () => {
  const server = await victim({ slow: 3000 }, 64)
  const text = lines(300)
  let hung = 0
  for (let index = 0; index < 40; index++) {
    const socket = connect(portOf(server.server), '127.0.0.1')
    afterwards(() => socket.destroy())
    socket.on('error', () => hung++)
    socket.resume()
    socket.write(upgrade())
    socket.write(text)
  }
  await new Promise((resolve) => void setTimeout(resolve, 2500))
  expect(server.alive()).toBe(true)
  expect(hung).toBe(0)
  // Everybody has a turn, also who comes last.
  const { lease } = await take(server.server, { name: 'somebody else', ttl: 60_000 })
  const body = { name: 'somebody else', lease }
  expect((await call(server.server, 'POST /v1/renew', { body })).status).toBe(200)
  expect(server.alive()).toBe(true)
}, 40_000)

it('gives room in turn: who waits for it goes before who comes', async () => {
  const load = new Load(10)
  const order: string[] = []
  const go = (who: string) => (): void => {
    order.push(`${who} ${load.hasRoom}`)
    load.begin(10)
  }
  load.begin(10)
  expect([load.hasRoom, load.isCrowded]).toEqual([false, false])
  const first = go('first')
  load.wait(first)
  load.wait(go('second'))
  load.wait(first)
  load.wait(go('third'))
  expect(load.isCrowded).toBe(true)
  load.end(10)
  // Free, but not for a newcomer.
  expect(load.hasRoom).toBe(false)
  const settled = (): Promise<void> =>
    new Promise((resolve) => void setImmediate(() => setImmediate(resolve)))
  await settled()
  expect(order).toEqual(['first true'])
  load.end(10)
  await settled()
  load.end(10)
  await settled()
  expect(order).toEqual(['first true', 'second true', 'third true'])
  load.end(10)
  expect([load.hasRoom, load.isCrowded]).toEqual([true, false])
})
