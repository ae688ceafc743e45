import { connect } from 'node:net'
import type { Socket } from 'node:net'

import { expect, it } from 'vitest'

import { afterwards, call, eventually, portOf, take } from '../helpers.ts'
import { openSession, upgrade } from './session.ts'
import type { RawSession } from './session.ts'
import { victim } from './victim.ts'
import type { Victim } from './victim.ts'

/** What one packet, or a crowd of connections, adds up to. Each request by itself is within its limits. */

const MB = 1024 * 1024
const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))

async function holdNames(session: RawSession, count: number, bytes: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, index) =>
      session.ask('claim', {
        name: `${index}-`.padEnd(bytes, 'x'),
        id: `s.${index}`,
        weight: 1,
        capacity: 1,
        ttl: 60_000,
        patience: 60_000,
        tokens: 1,
        whenBusy: 'try',
        owner: 'o',
      }),
    ),
  )
}

const lists = (count: number): string =>
  Array.from({ length: count }, (_, index) => `[${index + 1},"list",{"limit":1000},5000]\n`).join('')

/** Sends, and reads nothing. */
async function deaf(of: Victim, text: string): Promise<Socket> {
  const socket = connect(portOf(of.server), '127.0.0.1')
  afterwards(() => socket.destroy())
  socket.on('error', () => undefined)
  socket.pause()
  await new Promise<void>((resolve) => void socket.write(text, () => resolve()))
  return socket
}

it.each([
  ['its own memory', {}],
  ['a slow store behind it', { slow: 20 }],
])(
  'answers a packet of a thousand large questions as they are read, and not before, with %s',
  async (_, options) => {
    const server = await victim(options)
    await holdNames(await openSession(server.server), 1000, 500)
    await deaf(server, `${upgrade()}${lists(1875)}`)
    await deaf(server, `${upgrade()}${lists(1875)}`)
    await sleep(500)
    expect(server.alive()).toBe(true)
    await take(server.server, { name: 'somebody else' })
    expect(await server.memory()).toBeLessThan(300 * MB)
  },
)

it('answers all of them to who reads', async () => {
  const server = await victim()
  await holdNames(await openSession(server.server), 1000, 500)
  const socket = connect(portOf(server.server), '127.0.0.1')
  afterwards(() => socket.destroy())
  let answers = 0
  socket.on('data', (bytes: Buffer) => {
    for (const byte of bytes) if (byte === 10) answers++
  })
  socket.write(`${upgrade()}${lists(40)}`)
  // The upgrade has four lines, and the hello one.
  await eventually('all are answered', () => answers === 40 + 5, 40_000)
  expect(server.alive()).toBe(true)
})

it('keeps little for forty connections that ask for the largest page again and again and read nothing', async () => {
  const server = await victim({ limits: { writeTimeout: 2000 } })
  const before = await server.memory()
  const page = 'GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n'
  const sockets: Socket[] = []
  for (let round = 0; round < 10; round++) {
    for (let index = 0; index < 40; index++) {
      const socket = sockets[index]
      if (socket === undefined || socket.destroyed) sockets[index] = await deaf(server, page.repeat(10))
      else socket.write(page.repeat(10))
    }
    await sleep(30)
  }
  expect(server.alive()).toBe(true)
  await take(server.server, { name: 'somebody else' })
  expect((await server.memory()) - before).toBeLessThan(120 * MB)
})

it('ends a connection that asks for more and more at once, and one that takes nothing of its answer', async () => {
  const server = await victim({ limits: { writeTimeout: 1000 } })
  const page = 'GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n'
  const greedy = connect(portOf(server.server), '127.0.0.1')
  greedy.on('error', () => undefined)
  greedy.resume()
  greedy.write(page.repeat(1200))
  await new Promise((resolve) => void greedy.once('close', resolve))

  const session = await openSession(server.server)
  await holdNames(session, 1000, 60)
  await deaf(server, `${upgrade()}${lists(300)}`)
  const sessions = async (): Promise<string | undefined> =>
    /holdfast_sessions\{[^}]*\} (\d+)/.exec((await call(server.server, 'GET /v1/metrics')).text)?.[1]
  await eventually('it has begun', async () => (await sessions()) === '2')
  await eventually('the deaf one is gone', async () => (await sessions()) === '1', 15_000)
  expect(await session.ask('ping', null)).toEqual({ kind: 'done' })
})

it('has a limit for what all connections together leave unread: the one with most of it goes first', async () => {
  const server = await victim({ limits: { unreadInAll: 2 * MB } })
  const session = await openSession(server.server)
  await holdNames(session, 1000, 500)
  for (let index = 0; index < 15; index++) await deaf(server, `${upgrade()}${lists(20)}`)
  await eventually(
    'most of them are gone',
    async () => {
      const { text } = await call(server.server, 'GET /v1/metrics')
      return Number(/holdfast_sessions\{[^}]*\} (\d+)/.exec(text)?.[1]) <= 6
    },
    40_000,
  )
  expect(await session.ask('ping', null)).toEqual({ kind: 'done' })
})

it('says who waits, however many they are, to somebody who reads', async () => {
  const { server } = await victim({}, 256)
  const session = await openSession(server)
  const claim = { name: 'crowded', weight: 1, capacity: 1, ttl: 60_000, patience: 60_000, tokens: 1 }
  const all: Promise<unknown>[] = []
  for (let index = 0; index < 10_000; index++) {
    const owner = `${index} `.padEnd(250, 'o')
    all.push(session.ask('claim', { ...claim, id: `w.${index}`, whenBusy: 'queue', owner }))
    if (index % 500 === 0) await Promise.all(all)
  }
  await Promise.all(all)
  const info = (await session.ask('inspect', 'crowded')) as unknown as { waiters: unknown[] }
  expect(info.waiters).toHaveLength(9999)
})
