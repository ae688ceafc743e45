import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { hashToken } from '../../../src/server/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { call, eventually, look, serve, take, temporaryFolder } from '../helpers.ts'
import type { Answer } from '../helpers.ts'
import { openSession } from './session.ts'

const TOKENS = { mallory: 'mallory-0123456789-0123456789', victim: 'victim-0123456789-0123456789' }

function tokensFile(): string {
  const path = join(temporaryFolder(), 'tokens')
  const { mallory, victim } = TOKENS
  writeFileSync(
    path,
    `mallory ${hashToken(mallory)} acquire,read mine/\nvictim ${hashToken(victim)} acquire,read theirs/\n`,
    { mode: 0o600 },
  )
  return path
}

const as = (who: keyof typeof TOKENS): Record<string, string> => ({ authorization: `Bearer ${TOKENS[who]}` })

it('gives every HTTP lease a session of its own: no lease says anything about another', async () => {
  const server = await serve()
  const halves: string[] = []
  for (let index = 0; index < 20; index++) {
    const { lease } = await take(server, { name: `n${index}` })
    halves.push(...lease.split('.'))
  }
  expect(halves).toHaveLength(40)
  expect(new Set(halves).size).toBe(40)
  for (const half of halves) expect(half.length).toBeGreaterThanOrEqual(22)
})

it('tells a waiter behind HTTP of its grant, and nobody who knows another lease, whatever sessions they listen for', async () => {
  const server = await serve({ tokensFile: tokensFile() })
  const acquire = (who: keyof typeof TOKENS, body: unknown): Promise<Answer> =>
    call(server, 'POST /v1/acquire', { body, headers: as(who) })
  const leaseOf = ({ body }: Answer): string => (body as unknown as { lease: string }).lease

  const own = leaseOf(await acquire('mallory', { name: 'mine/a' }))
  const first = leaseOf(await acquire('victim', { name: 'theirs/a' }))
  const waiting = acquire('victim', { name: 'theirs/a', wait: 20_000 })
  const seen = async (): Promise<number> => {
    const { body } = await call(server, 'GET /v1/locks/theirs%2Fa', { headers: as('victim') })
    return (body as unknown as { waiters: unknown[] }).waiters.length
  }
  await eventually('it stands in line', async () => (await seen()) === 1)

  const attacker = await openSession(server, TOKENS.mallory)
  for (const session of own.split('.')) await attacker.ask('watch', session)
  const began = performance.now()
  await call(server, 'POST /v1/release', { body: { name: 'theirs/a', lease: first }, headers: as('victim') })
  const { status } = await waiting
  expect(status).toBe(200)
  // By push. Who has lost its wake-ups hears of it at the next sign of life only, seconds later.
  expect(performance.now() - began).toBeLessThan(2500)
  expect(attacker.events).toEqual([])
})

it('lets nobody but its principal listen for a session, as long as somebody does or has claims in it', async () => {
  const server = await serve({ tokensFile: tokensFile() })
  const victim = await openSession(server, TOKENS.victim)
  const claim = (id: string): unknown => ({
    name: 'theirs/b',
    id,
    weight: 1,
    capacity: 1,
    ttl: 5000,
    patience: 5000,
    tokens: 1,
    whenBusy: 'queue',
    owner: 'v',
  })
  expect(await victim.ask('watch', 'session-of-victim')).toEqual({ kind: 'done' })
  expect(await victim.ask('claim', claim('session-of-victim.1'))).toMatchObject({ kind: 'held' })
  expect(await victim.ask('claim', claim('session-of-victim.2'))).toMatchObject({ kind: 'queued' })

  const attacker = await openSession(server, TOKENS.mallory)
  expect(await attacker.ask('watch', 'session-of-victim')).toMatchObject({
    kind: 'unknown',
    retryable: false,
  })
  expect(await attacker.ask('unwatch', 'session-of-victim')).toEqual({ kind: 'done' })
  await victim.ask('release', { name: 'theirs/b', id: 'session-of-victim.1' })
  await eventually('the victim is told', () =>
    victim.events.some((event) => JSON.stringify(event).includes('granted')),
  )
  // Its connection is gone, its claim is not: until that has run out, the session is its principal's.
  victim.socket.destroy()
  await eventually('the connection is gone', async () => {
    const again = await openSession(server, TOKENS.victim)
    await again.ask('unwatch', 'session-of-victim')
    again.socket.destroy()
    return true
  })
  expect(await attacker.ask('watch', 'session-of-victim')).toMatchObject({
    kind: 'unknown',
    retryable: false,
  })
  const back = await openSession(server, TOKENS.victim)
  expect(await back.ask('watch', 'session-of-victim')).toEqual({ kind: 'done' })
  expect(attacker.events).toEqual([])
})

it("claims nothing in the name of a session that is another principal's", async () => {
  const server = await serve({ tokensFile: tokensFile() })
  const victim = await openSession(server, TOKENS.victim)
  await victim.ask('watch', 'their-session')
  const attacker = await openSession(server, TOKENS.mallory)
  const claim = { name: 'mine/b', id: 'their-session.9', weight: 1, capacity: 1, ttl: 5000, patience: 5000 }
  expect(await attacker.ask('claim', { ...claim, tokens: 1, whenBusy: 'queue', owner: 'm' })).toMatchObject({
    kind: 'unknown',
    retryable: false,
  })
})

it('keeps the order of those who wait over HTTP, and their speed, on a front as well', async () => {
  const server = await serve({ store: memoryStore() })
  const { lease } = await take(server, { name: 'a' })
  const order: number[] = []
  const waiting: Promise<void>[] = []
  for (let number = 0; number < 5; number++) {
    waiting.push(
      take(server, { name: 'a', wait: 20_000 }).then(async (got) => {
        order.push(number)
        await call(server, 'POST /v1/release', { body: { name: 'a', lease: got.lease } })
      }),
    )
    await eventually('it stands in line', async () => (await look(server, 'a')).waiters.length === number + 1)
  }
  const began = performance.now()
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  await Promise.all(waiting)
  expect(order).toEqual([0, 1, 2, 3, 4])
  expect(performance.now() - began).toBeLessThan(2500)
})
