import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { Socket } from 'node:net'

import { expect, it } from 'vitest'

import { Turns } from '../../../src/server/turns.ts'
import { afterwards, call, eventually, portOf, raw, serve, take } from '../helpers.ts'
import { victim } from './victim.ts'

/** Requests that wait behind one that is being answered. */

const MB = 1024 * 1024

class Wire {
  destroyed = false
  destroy(): void {
    this.destroyed = true
  }
}

const requestOn = (wire: Wire, bytes: number): IncomingMessage =>
  ({
    socket: wire as unknown as Socket,
    rawHeaders: [],
    url: '',
    headers: { 'content-length': String(bytes) },
  }) as unknown as IncomingMessage

it('keeps requests up to a number of bytes in all, and closes the connections that have most', () => {
  const turns = new Turns(100_000)
  const [small, ...fat] = Array.from({ length: 9 }, () => new Wire())
  const served: string[] = []
  const line = (wire: Wire, name: string, bytes: number): void =>
    turns.take(requestOn(wire, bytes), () => void served.push(name))
  if (small === undefined) throw new Error('no wire')
  line(small, 'small 1', 100)
  line(small, 'small 2', 100)
  for (const [index, wire] of fat.entries()) {
    line(wire, `fat ${index}`, 10_000)
    line(wire, `fat ${index} again`, 10_000)
    line(wire, `fat ${index} again`, 10_000)
  }
  expect(turns.size).toBeLessThanOrEqual(100_000)
  expect(fat.some(({ destroyed }) => destroyed)).toBe(true)
  expect(small.destroyed).toBe(false)
  expect(turns.isBusy(small as unknown as Socket)).toBe(true)
  turns.done(small as unknown as Socket)
  expect(served).toContain('small 2')
  for (const wire of [small, ...fat]) {
    wire.destroy()
    turns.done(wire as unknown as Socket)
  }
  expect(turns.size).toBe(0)
})

it('counts nothing twice, whatever the order of requests, answers and hang-ups', () => {
  let seed = 11
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  const turns = new Turns(200_000)
  let wires = Array.from({ length: 5 }, () => new Wire())
  for (let step = 0; step < 3000; step++) {
    const wire = wires[random(5)]
    if (wire === undefined) continue
    const what = random(10)
    if (what < 5) turns.take(requestOn(wire, random(20_000)), () => undefined)
    else if (what < 9) turns.done(wire as unknown as Socket)
    else wire.destroy()
    wires = wires.map((one) => {
      if (!one.destroyed) return one
      turns.done(one as unknown as Socket)
      return new Wire()
    })
    expect(turns.size).toBeGreaterThanOrEqual(0)
    expect(turns.size).toBeLessThanOrEqual(200_000)
  }
  for (const wire of wires) {
    wire.destroy()
    turns.done(wire as unknown as Socket)
  }
  expect(turns.size).toBe(0)
})

it('keeps little of what is sent behind requests that wait for a lock', async () => {
  const { server, alive, memory } = await victim({ state: null }, 128)
  await take(server, { name: 'x', ttl: 600_000 })
  const head = `POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nholdfast-request: 1\r\n`
  const body = JSON.stringify({ name: 'x', wait: 60_000 })
  const wait = `${head}content-length: ${body.length}\r\n\r\n${body}`
  const fat = `${head}x: ${'h'.repeat(7700)}\r\ncontent-length: 16000\r\n\r\n${'b'.repeat(16_000)}`
  for (let index = 0; index < 300; index++) {
    const socket = connect(portOf(server), '127.0.0.1')
    afterwards(() => socket.destroy())
    socket.on('error', () => undefined)
    await new Promise<void>((resolve) => void socket.write(wait + fat.repeat(31), () => resolve()))
  }
  expect((await call(server, 'GET /v1/health')).status).toBe(200)
  expect(alive()).toBe(true)
  // 240 MB were sent.
  expect(await memory()).toBeLessThan(180 * MB)
})

it('answers those that wait one after the other, also large ones, and notices who hangs up', async () => {
  const server = await serve({ state: null })
  const body = JSON.stringify({
    leases: Array.from({ length: 90 }, () => ({
      name: 'n'.repeat(60),
      lease: `${'l'.repeat(30)}.${'l'.repeat(30)}`,
    })),
  })
  const head = (more: string): string =>
    `POST /v1/renew HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nholdfast-request: 1\r\ncontent-length: ${body.length}\r\n${more}\r\n`
  const got = await raw(server, `${(head('') + body).repeat(20)}${head('connection: close\r\n')}${body}`)
  expect(got.match(/HTTP\/1\.1 200/g)).toHaveLength(21)
  await take(server, { name: 'a', ttl: 60_000 })
  const wish = JSON.stringify({ name: 'a', wait: 60_000 })
  const socket = connect(portOf(server), '127.0.0.1')
  const acquire = `POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nholdfast-request: 1\r\ncontent-length: ${wish.length}\r\n\r\n${wish}`
  socket.write(acquire + 'GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n')
  const waiters = async (): Promise<number> => {
    const { body: info } = await call(server, 'GET /v1/locks/a')
    return (info as unknown as { waiters: unknown[] }).waiters.length
  }
  await eventually('it waits', async () => (await waiters()) === 1)
  socket.destroy()
  await eventually('it has left', async () => (await waiters()) === 0)
})
