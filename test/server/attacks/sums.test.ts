import { expect, it, vi } from 'vitest'

import { resolveLimits } from '../../../src/server/limits.ts'
import { Principal } from '../../../src/server/rights.ts'
import { TokenBudget } from '../../../src/server/token-budget.ts'
import { Withdrawals } from '../../../src/server/withdrawals.ts'
import { ClaimRegistry } from '../../../src/server/claim-registry.ts'
import { victim } from './victim.ts'
import { temporaryFolder } from '../helpers.ts'
import { afterwards, call, eventually, look, serve, take } from '../helpers.ts'
import { openSession } from './session.ts'

/** What one principal may add up to by requests that are each allowed. */

const CLAIM = { weight: 1, capacity: 1, ttl: 60_000, patience: 5000, tokens: 1, whenBusy: 'try', owner: 'o' }

it('withdrawals of claims that nobody made are refused beyond a number, and what is held is still given up', async () => {
  const server = await serve()
  const session = await openSession(server)
  await session.ask('claim', { ...CLAIM, name: 'kept', id: 's.0' })
  const answers: Record<string, unknown>[] = []
  for (let round = 0; round < 21; round++) {
    const asked = Array.from({ length: 1000 }, (_, at) =>
      session.ask('withdraw', { name: `n${round}-${at}`, id: `s.${round}x${at}` }),
    )
    answers.push(...(await Promise.all(asked)))
  }
  expect(answers.filter(({ kind }) => kind === 'not-held')).toHaveLength(20_000)
  expect(answers.at(-1)).toMatchObject({ kind: 'unknown', code: 'TOO_MANY' })
  expect(await session.ask('claim', { ...CLAIM, name: 'other', id: 's.1' })).toMatchObject({
    code: 'TOO_MANY',
  })
  expect(await session.ask('withdraw', { name: 'kept', id: 's.0' })).toMatchObject({ kind: 'released' })
})

it('a request over HTTP whose wait is over, or that hangs up, is no withdrawal: it leaves no note', async () => {
  const add = vi.spyOn(Withdrawals.prototype, 'add')
  afterwards(() => add.mockRestore())
  const server = await serve()
  await take(server, { name: 'a' })
  expect((await call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 5 } })).status).toBe(409)
  const gone = call(server, 'POST /v1/acquire', {
    body: { name: 'a', wait: 20_000 },
    signal: AbortSignal.timeout(50),
  })
  await expect(gone).rejects.toThrow('aborted')
  await eventually('nobody waits', async () => (await look(server, 'a')).waiters.length === 0)
  expect(add).not.toHaveBeenCalled()
  await (await openSession(server)).ask('withdraw', { name: 'a', id: 's.0' })
  expect(add).toHaveBeenCalledOnce()
})

it('withdrawals are forgotten with the notes that they left', () => {
  let now = 0
  const withdrawals = new Withdrawals(() => now)
  const [one, other] = [new Principal('one', [], []), new Principal('other', [], [])]
  for (let count = 0; count < 20_000; count++) withdrawals.add(one)
  expect([withdrawals.areTooMany(one), withdrawals.areTooMany(other)]).toEqual([true, false])
  now = 60_000
  expect(withdrawals.areTooMany(one)).toBe(true)
  now = 120_000
  expect(withdrawals.areTooMany(one)).toBe(false)
  for (let each = 0; each < 5; each++) {
    const principal = new Principal(`p${each}`, [], [])
    for (let count = 0; count < 20_000; count++) withdrawals.add(principal)
  }
  const late = new Principal('late', [], [])
  for (let count = 0; count < 16_000; count++) withdrawals.add(late)
  // All together are too many: that is for those with more than their part, not for who has none of it.
  expect([withdrawals.areTooMany(late), withdrawals.areTooMany(other)]).toEqual([true, false])
})

it('a lease that is taken away by force leaves a note, and is counted', async () => {
  const add = vi.spyOn(Withdrawals.prototype, 'add')
  afterwards(() => add.mockRestore())
  const server = await serve()
  await take(server, { name: 'a' })
  await call(server, 'POST /v1/force-release', { body: { name: 'a', reason: 'a test' } })
  expect(add).toHaveBeenCalledOnce()
})

it('sessions to listen for are as many as waiters, over all connections of a principal', async () => {
  const server = await serve({ limits: { waitersPerPrincipal: 50 } })
  const [one, other] = [await openSession(server), await openSession(server)]
  for (let number = 0; number < 30; number++)
    expect(await one.ask('watch', `a${number}`)).toMatchObject({ kind: 'done' })
  for (let number = 0; number < 20; number++) await other.ask('watch', `b${number}`)
  expect(await other.ask('watch', 'c')).toMatchObject({ kind: 'unknown', code: 'TOO_MANY' })
  // Again, for one that is listened for already, and after another was given up.
  expect(await other.ask('watch', 'b1')).toMatchObject({ kind: 'done' })
  await one.ask('unwatch', 'a1')
  expect(await other.ask('watch', 'c')).toMatchObject({ kind: 'done' })
  one.socket.destroy()
  await eventually(
    'its sessions are forgotten',
    async () => (await other.ask('watch', 'd'))['kind'] === 'done',
  )
})

it('requests that wait leave connections for others', async () => {
  const server = await serve({ limits: { connections: 48 } })
  const { lease } = await take(server, { name: 'a' })
  const waiting = Array.from({ length: 60 }, () =>
    call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 20_000 } }).then(
      ({ status }) => status,
      () => 0,
    ),
  )
  await eventually('they wait', async () => (await look(server, 'a')).waiters.length === 45)
  for (let time = 0; time < 5; time++) expect((await call(server, 'GET /v1/health')).status).toBe(200)
  expect((await call(server, 'POST /v1/acquire', { body: { name: 'b' } })).status).toBe(200)
  await server.close({ grace: 50 })
  const statuses = await Promise.all(waiting)
  // The rest were told so, or found no connection.
  expect(statuses.filter((status) => status === 429 || status === 0)).toHaveLength(15)
  expect(lease).not.toBe('')
})

it('a request that waited leaves its place to the next one', async () => {
  const server = await serve({ limits: { streamsPerPrincipal: 1 } })
  const { lease } = await take(server, { name: 'a' })
  const wait = (ms: number) => call(server, 'POST /v1/acquire', { body: { name: 'a', wait: ms } })
  expect((await wait(20)).body.error.code).toBe('LOCK_TIMEOUT')
  expect((await wait(20)).body.error.code).toBe('LOCK_TIMEOUT')
  const first = wait(5000)
  await eventually('it waits', async () => (await look(server, 'a')).waiters.length === 1)
  expect((await wait(20)).body.error.code).toBe('TOO_MANY')
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  expect((await first).status).toBe(200)
  expect((await wait(20)).body.error.code).toBe('LOCK_TIMEOUT')
})

it('tokens do not run ahead of the clock, however many are asked for', async () => {
  const server = await serve()
  const session = await openSession(server)
  await session.ask('claim', { ...CLAIM, name: 'a', id: 's.1' })
  const renewal = { name: 'a', id: 's.1', ttl: 60_000, patience: 1, tokens: 65_536 }
  const line = Array.from({ length: 100 }, () => renewal)
  for (let round = 0; round < 20; round++) await session.ask('renew', line)
  const [last] = (await session.ask('renew', [renewal])) as unknown as [{ token: string }]
  expect(Number(last.token) / 1000 - Date.now()).toBeLessThan(3000)
})

it('tokens beyond the budget come one by one, and it fills up again', () => {
  let now = 0
  const budget = new TokenBudget(() => now)
  const one = new Principal('one', [], [])
  expect(budget.take(one, 1_000_000)).toBe(1_000_000)
  expect([budget.take(one, 500), budget.take(one, 1), budget.take(one, 0)]).toEqual([1, 1, 0])
  expect(budget.take(new Principal('other', [], []), 500)).toBe(500)
  now = 0.4
  expect(budget.take(one, 500)).toBe(400)
})

it.each([
  [{ minTtl: 5000, maxTtl: 1000 }, 'limits.minTtl'],
  [{ maxTtl: 50 }, 'limits.maxTtl (50)'],
  [{ requestTimeout: 5000 }, 'limits.headersTimeout (10000)'],
])('limits that contradict each other are refused: %j', (wished, words) => {
  expect(() => resolveLimits(wished)).toThrow(words)
})

it('claims have room up to a part of the heap, one principal does not take all of it, and what is there goes on', () => {
  const heap = 40_000
  const book = new ClaimRegistry('memory', () => 0, heap)
  const [one, other] = [new Principal('one', [], []), new Principal('other', [], [])]
  const caller = (principal: Principal) => ({ principal, remote: '-', request: '-' })
  const claim = (principal: Principal, number: number): void =>
    book.claimed(
      caller(principal),
      { ...CLAIM, whenBusy: 'try', name: `n${number}`, id: `s.${number}`, owner: 'o'.repeat(100) },
      { kind: 'held', token: 1n, count: 1, contended: false },
    )
  let number = 0
  while (!book.isFullFor(one)) claim(one, number++)
  const most = number
  expect(most).toBeGreaterThan(5)
  expect(book.isFullFor(other)).toBe(false)
  while (!book.isFullFor(other)) claim(other, number++)
  expect(number).toBeLessThan(heap / 1024)
  for (let ended = 0; ended < number; ended++)
    book.released({ name: `n${ended}`, id: `s.${ended}` }, { kind: 'released' })
  for (let again = 0; again < most; again++) {
    expect(book.isFullFor(one)).toBe(false)
    claim(one, again)
  }
  book.close()
})

it('leases that fill what there is for them are all written down by a planned stop, and taken up again', async () => {
  const state = `${temporaryFolder()}/state.json`
  const first = await victim({ state }, 64)
  const session = await openSession(first.server)
  const long = { owner: '\u{1f512}'.repeat(200), ttl: 3_600_000 }
  let held = 0
  let last: unknown
  for (let full = false; !full;) {
    const answers = await Promise.all(
      Array.from({ length: 500 }, (_, index) => {
        const name = `${'\u00e9'.repeat(200)}${held + index}`
        return session.ask('claim', { ...CLAIM, ...long, name, id: `s.${'i'.repeat(90)}${held + index}` })
      }),
    )
    const some = answers.filter(({ kind }) => kind === 'held').length
    held += some
    full = some < answers.length
    last = answers.at(-1)
  }
  expect(last).toMatchObject({ code: 'TOO_MANY' })
  expect(held).toBeGreaterThan(5000)
  expect(await first.stop()).toBe(0)
  const second = await victim({ state }, 64)
  const { text } = await call(second.server, 'GET /v1/metrics')
  expect(Number(/holdfast_held\{[^}]*\} (\d+)/.exec(text)?.[1])).toBe(held)
  expect(await second.stop()).toBe(0)
}, 120_000)
