import { connect } from 'node:net'

import { expect, it } from 'vitest'

import { Looks } from '../../src/server/looks.ts'
import { Principal } from '../../src/server/rights.ts'
import { shownOf } from '../../src/server/shown-claims.ts'
import { Shares } from '../../src/server/shares.ts'
import { afterwards, portOf } from './helpers.ts'
import { openSession } from './attacks/session.ts'
import { victim } from './attacks/victim.ts'

/** What takes long waits for its turn, and nobody else waits for it. */

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))
const named = (name: string): Principal => new Principal(name, ['read'], ['*'])

it('looks once in a turn of the loop, for one principal after the other', async () => {
  const looks = new Looks()
  const [one, other] = [named('one'), named('other')]
  const done: string[] = []
  const ask = (principal: Principal, what: string): unknown =>
    looks.take(principal, () => {
      done.push(what)
      return what
    })
  expect(ask(one, 'one 1')).toBe('one 1')
  const asked = [ask(one, 'one 2'), ask(one, 'one 3'), ask(one, 'one 4'), ask(other, 'other 1')]
  expect(done).toEqual(['one 1'])
  await turn()
  expect(done).toEqual(['one 1', 'one 2'])
  await turn()
  expect(done).toEqual(['one 1', 'one 2', 'other 1'])
  expect(await Promise.all(asked)).toEqual(['one 2', 'one 3', 'one 4', 'other 1'])
  await turn()
  expect(ask(other, 'other 2')).toBe('other 2')
})

it('refuses more than a thousand of one principal, tells of failures, and goes on', async () => {
  const looks = new Looks()
  const [one, other] = [named('one'), named('other')]
  expect(looks.take(one, () => 0)).toBe(0)
  const failing = looks.take(one, () => {
    throw new Error('broken')
  })
  const told = Promise.resolve(failing).catch((error: Error) => error.message)
  const rest = Array.from({ length: 999 }, async (_, index) => looks.take(one, () => index))
  expect(() => looks.take(one, () => 0)).toThrow('too many')
  expect(await looks.take(other, () => 7)).toBe(7)
  expect(await told).toBe('broken')
  expect(await Promise.all(rest)).toHaveLength(999)
})

it('waits for no answer of a slow store: the next look has its turn, and each its own answer', async () => {
  const looks = new Looks()
  const [one, other] = [named('one'), named('other')]
  const answers: ((answer: string) => void)[] = []
  const slow = (): Promise<string> => new Promise((resolve) => void answers.push(resolve))
  const asked = [one, one, other].map((principal) => Promise.resolve(looks.take(principal, slow)))
  await turn()
  await turn()
  expect(answers).toHaveLength(3)
  expect(await looks.take(other, () => 'at once')).toBe('at once')
  // In the order in which they were asked, which is not that in which the store answers.
  for (const [index, answer] of [...answers.entries()].reverse()) answer(`look ${index}`)
  expect(await Promise.all(asked)).toEqual(['look 0', 'look 1', 'look 2'])
  const failing = looks.take(one, () => Promise.reject(new Error('no answer')))
  await expect(failing).rejects.toThrow('no answer')
})

it('gives the sessions of one principal their time together, one after the other', async () => {
  const shares = new Shares()
  const share = shares.of(named('one'))
  expect(shares.of(named('other')).left).toBeGreaterThan(0)
  const done: number[] = []
  share.spend(25)
  expect(share.left).toBeLessThanOrEqual(0)
  const go = (index: number) => (): void => {
    done.push(index)
    share.spend(15)
  }
  const gos = [0, 1, 2, 3].map(go)
  for (const one of gos) share.wait(one)
  if (gos[3] !== undefined) share.forget(gos[3])
  await turn()
  expect(done).toEqual([0, 1])
  // Whoever comes now comes after those who wait.
  expect(share.left).toBe(0)
  await turn()
  expect(done).toEqual([0, 1, 2])
  await turn()
  expect(share.left).toBeGreaterThan(0)
})

it('shows the first of a crowd', () => {
  const claims = (count: number, owner: string) =>
    Array.from({ length: count }, (_, index) => ({ id: `s.${index}`, owner, weight: 1, expiresIn: 1 }))
  const some = shownOf({ name: 'a', capacity: 9, holders: claims(10, 'o'), waiters: claims(9999, 'o') })
  expect([some.holders.length, some.waiters.length]).toEqual([10, 9999])
  const many = shownOf({
    name: 'a',
    capacity: 9,
    holders: claims(200_000, 'o'),
    waiters: claims(10_001, 'o'),
  })
  expect([many.holders.length, many.waiters.length]).toEqual([10_000, 10_000])
  const long = shownOf({
    name: 'a',
    capacity: 9,
    holders: claims(9999, 'o'.repeat(1000)),
    waiters: claims(5, 'o'),
  })
  expect(JSON.stringify(long).length).toBeLessThan(9_000_000)
  expect(long.holders.length).toBeGreaterThan(5000)
})

it('renews for others while twenty connections ask for all names again and again', async () => {
  const { server } = await victim({ state: null }, 512)
  const owner = await openSession(server)
  const claim = {
    weight: 1,
    capacity: 1,
    ttl: 600_000,
    patience: 1000,
    tokens: 1,
    whenBusy: 'try',
    owner: 'o',
  }
  for (let from = 20_000; from > 0; from -= 1000) {
    const some = Array.from({ length: 1000 }, (_, index) => String(from - index).padStart(9, '0'))
    await Promise.all(some.map((name) => owner.ask('claim', { ...claim, name, id: `s.${name}` })))
  }
  const request = 'GET /v1/locks?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n'
  let answers = 0
  const readers = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const socket = connect(portOf(server), '127.0.0.1')
      afterwards(() => socket.destroy())
      socket.on(
        'data',
        (bytes: Buffer) => (answers += bytes.toString('latin1').split('HTTP/1.1 200').length - 1),
      )
      await new Promise((resolve) => void socket.once('connect', resolve))
      return socket
    }),
  )
  for (const socket of readers) socket.write(request.repeat(5))
  const start = performance.now()
  let slowest = 0
  while (answers < 100) {
    const began = performance.now()
    const renewal = { name: '000000001', id: 's.000000001', ttl: 600_000, patience: 1000, tokens: 0 }
    expect(await owner.ask('renew', [renewal])).toMatchObject([{ kind: 'renewed' }])
    slowest = Math.max(slowest, performance.now() - began)
  }
  // All of it, if they are all answered first.
  expect(slowest).toBeLessThan((performance.now() - start) / 4)
}, 60_000)
