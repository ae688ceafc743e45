import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { Holdfast } from '../../src/index.ts'
import { hashToken } from '../../src/server/index.ts'
import type { LogEntry, RunningServer, ServerOptions } from '../../src/server/index.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { afterwards, call, eventually, look, serve, take, temporaryFolder } from './helpers.ts'
import type { Answer } from './helpers.ts'
import { openSession } from './attacks/session.ts'

const newState = (): string => join(temporaryFolder(), 'state.json')

/** A planned restart at the same address, with what is given changed in between. */
async function restarted(
  server: RunningServer,
  state: string,
  changes: ServerOptions = {},
): Promise<RunningServer> {
  await server.close()
  return serve({ listen: server.address, state, ...changes })
}

const secret = (letter: string): string => `${letter.repeat(30)}.${letter.repeat(30)}`

it('goes on with leases over HTTP: they are renewed and released at the next server, and nobody else gets them', async () => {
  const state = newState()
  const said: LogEntry[] = []
  const first = await serve({ state })
  const { lease, token } = await take(first, { name: 'a', ttl: 20_000 })
  const second = await restarted(first, state, { log: (entry) => void said.push(entry) })
  expect(second.startsIn).toBe(0)
  expect(said).toMatchObject([{ level: 'info', message: 'Goes on with claims of the former run: 1' }])
  expect((await call(second, 'POST /v1/acquire', { body: { name: 'a' } })).body.error.code).toBe('LOCK_BUSY')
  expect((await call(second, 'POST /v1/renew', { body: { name: 'a', lease } })).status).toBe(200)
  // And once more: what was renewed goes on, too.
  const third = await restarted(second, state)
  expect((await call(third, 'POST /v1/release', { body: { name: 'a', lease } })).status).toBe(200)
  expect((await take(third, { name: 'a' })).token).toBeGreaterThan(token)
})

it('renews a lease for as long as it was last taken or renewed for, when nobody says it, within the limits of now', async () => {
  const state = newState()
  const first = await serve({ state })
  const { lease: long } = await take(first, { name: 'long', ttl: 300_000 })
  const { lease: longer } = await take(first, { name: 'longer', ttl: 1000 })
  await call(first, 'POST /v1/renew', { body: { name: 'longer', lease: longer, ttl: 200_000 } })
  const renewed = async (server: RunningServer, name: string, lease: string): Promise<unknown> =>
    (await call(server, 'POST /v1/renew', { body: { name, lease } })).body['ttl']
  const second = await restarted(first, state)
  expect(await renewed(second, 'long', long)).toBe(300_000)
  expect(await renewed(second, 'longer', longer)).toBe(200_000)
  // And once more, with other limits: what was said before does not pass them by.
  const third = await restarted(second, state, { limits: { maxTtl: 250_000 } })
  expect(await renewed(third, 'long', long)).toBe(250_000)
  expect(await renewed(third, 'longer', longer)).toBe(200_000)
})

it('keeps the place of a request that waits with a secret of its own, and of nobody who cannot come back', async () => {
  const state = newState()
  const first = await serve({ state })
  const { lease } = await take(first, { name: 'a', ttl: 20_000 })
  const wait = (server: RunningServer, own?: string): Promise<Answer> =>
    call(server, 'POST /v1/acquire', {
      body: { name: 'a', wait: 20_000, ...(own === undefined ? {} : { lease: own }) },
    })
  const inLine = (server: RunningServer, count: number): Promise<void> =>
    eventually(`${count} in line`, async () => (await look(server, 'a')).waiters.length === count)
  const answers: Promise<Answer>[] = []
  for (const own of [undefined, secret('b'), secret('c')]) {
    answers.push(wait(first, own))
    await inLine(first, answers.length)
  }
  const second = await restarted(first, state)
  for (const { status, body } of await Promise.all(answers))
    expect([status, body.error.code]).toEqual([503, 'STOPPING'])
  await inLine(second, 2)
  // They come back in another order, and behind somebody new.
  const fresh = wait(second)
  await inLine(second, 3)
  const c = wait(second, secret('c'))
  const b = wait(second, secret('b'))
  for (const own of [secret('b'), secret('c')])
    await eventually('it is back', async () => {
      // Under another name, so that it does nothing if it comes first.
      const { body } = await call(second, 'POST /v1/acquire', { body: { name: 'x', lease: own, wait: 1 } })
      return body.error.message.includes('under way')
    })
  const began = performance.now()
  await call(second, 'POST /v1/release', { body: { name: 'a', lease } })
  expect((await b).status).toBe(200)
  await call(second, 'POST /v1/release', { body: { name: 'a', lease: secret('b') } })
  expect((await c).status).toBe(200)
  await call(second, 'POST /v1/release', { body: { name: 'a', lease: secret('c') } })
  expect((await fresh).status).toBe(200)
  // Each by push. Who is not told hears of it at the next sign of life only, three seconds later.
  expect(performance.now() - began).toBeLessThan(2500)
})

it('keeps the line in order when somebody releases while it stops, and the first in line is gone already', async () => {
  const state = newState()
  const first = await serve({ state })
  const [holder, early, late] = await Promise.all([1, 2, 3].map(() => openSession(first)))
  if (holder === undefined || early === undefined || late === undefined) throw new Error('no session')
  const usual = { weight: 1, capacity: 1, tokens: 1, ttl: 20_000, patience: 9000, whenBusy: 'queue' }
  const claim = (owner: string): object => ({ ...usual, name: 'a', id: `${owner}.1`, owner })
  await holder.ask('claim', claim('holder'))
  for (const [owner, session] of Object.entries({ early, late })) {
    await session.ask('watch', owner)
    await session.ask('claim', claim(owner))
  }
  // They hear that it ends, and leave when they like.
  for (const { socket } of [holder, late]) socket.allowHalfOpen = true
  const gone = new Promise((resolve) => early.socket.once('close', resolve))
  const closing = first.close()
  await gone
  await new Promise((resolve) => void setTimeout(resolve, 50))
  // Nobody answers on a connection that has ended.
  holder.socket.write(`${JSON.stringify([9, 'release', { name: 'a', id: 'holder.1' }, 5000])}\n`)
  await closing
  const second = await serve({ state })
  expect(await look(second, 'a')).toMatchObject({
    holders: [{ owner: 'early' }],
    waiters: [{ owner: 'late' }],
  })
})

it('answers a try with the secret of a place in line that it is busy, and the place is given up', async () => {
  const state = newState()
  const first = await serve({ state })
  await take(first, { name: 'a', ttl: 20_000 })
  const body = { name: 'a', lease: secret('b') }
  const waiting = call(first, 'POST /v1/acquire', { body: { ...body, wait: 20_000 } })
  await eventually('it stands in line', async () => (await look(first, 'a')).waiters.length === 1)
  const second = await restarted(first, state)
  await waiting
  expect((await call(second, 'POST /v1/acquire', { body })).body.error.code).toBe('LOCK_BUSY')
  await eventually('it has left', async () => (await look(second, 'a')).waiters.length === 0)
})

it('is no more than a pause for users of the library: holders, waiters in their order, readers and permits', async () => {
  const state = newState()
  const first = await serve({ state })
  const make = (): Holdfast => {
    const store = holdfastStore(first.url)
    const holdfast = new Holdfast(store)
    afterwards(async () => {
      await holdfast.close({ drain: 0 })
      await store.close()
    })
    return holdfast
  }
  const [one, two, three] = [make(), make(), make()]
  const lease = await one.mutex('a').acquire()
  const permit = await one.semaphore('s', 2).acquire()
  const reader = await one.readWriteLock('rw').read.acquire()
  const order: string[] = []
  const enter = async (holdfast: Holdfast, who: string): Promise<void> => {
    const own = await holdfast.mutex('a').acquire()
    expect(own.token).toBeGreaterThan(lease.token)
    order.push(who)
    await own.release()
  }
  const second = enter(two, 'two')
  await eventually('two waits', async () => (await look(first, 'a')).waiters.length === 1)
  const third = enter(three, 'three')
  await eventually('three waits', async () => (await look(first, 'a')).waiters.length === 2)
  const server = await restarted(first, state)
  expect((await look(server, 'a')).waiters).toHaveLength(2)
  for (const held of [lease, permit, reader]) held.assertHeld()
  expect(await lease.release()).toBe('released')
  await Promise.all([second, third])
  expect(order).toEqual(['two', 'three'])
  expect(
    await two
      .mutex('s')
      .tryAcquire()
      .catch(() => 'mismatch'),
  ).toBe('mismatch')
  expect(await permit.release()).toBe('released')
  expect(await reader.release()).toBe('released')
}, 30_000)

const TOKENS = { mallory: 'mallory-0123456789-0123456789', victim: 'victim-0123456789-0123456789' }
const as = (who: keyof typeof TOKENS): Record<string, string> => ({ authorization: `Bearer ${TOKENS[who]}` })

function tokensFile(...who: (keyof typeof TOKENS)[]): string {
  const path = join(temporaryFolder(), 'tokens')
  const lines = who.map((name) => `${name} ${hashToken(TOKENS[name])} acquire,read *\n`)
  writeFileSync(path, lines.join(''), { mode: 0o600 })
  return path
}

it('leaves sessions to their principals: nobody else listens for one, or claims in it, after the restart either', async () => {
  const state = newState()
  const both = tokensFile('mallory', 'victim')
  const first = await serve({ state, tokensFile: both })
  await call(first, 'POST /v1/acquire', {
    body: { name: 'a', lease: secret('v'), ttl: 20_000 },
    headers: as('victim'),
  })
  const second = await restarted(first, state, { tokensFile: both })
  const attacker = await openSession(second, TOKENS.mallory)
  expect(await attacker.ask('watch', 'v'.repeat(30))).toMatchObject({ kind: 'unknown', code: 'FORBIDDEN' })
  const { body } = await call(second, 'POST /v1/acquire', {
    body: { name: 'b', lease: `${'v'.repeat(30)}.${'w'.repeat(30)}` },
    headers: as('mallory'),
  })
  expect(body.error.code).toBe('FORBIDDEN')
})

it('counts what a principal has, also under limits that were lowered, and leaves what it has to end', async () => {
  const state = newState()
  const both = tokensFile('mallory', 'victim')
  const first = await serve({ state, tokensFile: both })
  const leases = [secret('a'), secret('b')]
  for (const lease of leases)
    await call(first, 'POST /v1/acquire', {
      body: { name: lease.slice(0, 5), lease, ttl: 20_000 },
      headers: as('victim'),
    })
  const limits = { leasesPerPrincipal: 2, maxTtl: 5000 }
  const second = await restarted(first, state, { tokensFile: both, limits })
  const acquire = (who: keyof typeof TOKENS): Promise<Answer> =>
    call(second, 'POST /v1/acquire', { body: { name: 'c', ttl: 1000 }, headers: as(who) })
  expect((await acquire('victim')).body.error.code).toBe('TOO_MANY')
  expect((await acquire('mallory')).status).toBe(200)
  // Renewed within the new limits only; nothing that was promised is cut short.
  const renew = (ttl: number): Promise<Answer> =>
    call(second, 'POST /v1/renew', { body: { name: 'aaaaa', lease: leases[0], ttl }, headers: as('victim') })
  expect((await renew(20_000)).status).toBe(400)
  const { holders } = (await call(second, 'GET /v1/locks/aaaaa', { headers: as('mallory') }))
    .body as unknown as { holders: { expiresIn: number }[] }
  expect(holders[0]?.expiresIn).toBeGreaterThan(10_000)
  expect((await renew(5000)).status).toBe(200)
})

it('keeps a lease for as long as it has when its principal is not among the tokens any more', async () => {
  const state = newState()
  const first = await serve({ state, tokensFile: tokensFile('mallory', 'victim') })
  const body = { name: 'a', lease: secret('v'), ttl: 20_000 }
  await call(first, 'POST /v1/acquire', { body, headers: as('victim') })
  const second = await restarted(first, state, { tokensFile: tokensFile('mallory') })
  const call2 = (line: string, more: object, who: keyof typeof TOKENS): Promise<Answer> =>
    call(second, line, { body: { name: 'a', ...more }, headers: as(who) })
  expect((await call2('POST /v1/renew', { lease: secret('v') }, 'victim')).status).toBe(401)
  expect((await call2('POST /v1/acquire', {}, 'mallory')).body.error.code).toBe('LOCK_BUSY')
  expect((await call2('POST /v1/acquire', { lease: secret('v') }, 'mallory')).body.error.code).toBe(
    'FORBIDDEN',
  )
})

it('tells nobody else at the same file or address about it: the second server does not start', async () => {
  const state = newState()
  const first = await serve({ state })
  const { lease } = await take(first, { name: 'a', ttl: 20_000 })
  await expect(serve({ state })).rejects.toThrow('in use by another lock server')
  await expect(serve({ state: newState(), listen: first.address })).rejects.toThrow('EADDRINUSE')
  const second = await restarted(first, state)
  expect((await call(second, 'POST /v1/renew', { body: { name: 'a', lease } })).status).toBe(200)
})

it('does not take the claims from a file when it cannot listen', async () => {
  const state = newState()
  const first = await serve({ state })
  const { lease } = await take(first, { name: 'a', ttl: 20_000 })
  await first.close()
  const other = await serve()
  await expect(serve({ state, listen: other.address })).rejects.toThrow('EADDRINUSE')
  const second = await serve({ state })
  expect((await call(second, 'POST /v1/renew', { body: { name: 'a', lease } })).status).toBe(200)
})

it.each(['its first tokens file', 'no tokens file any more'])(
  'lets a program that holds a lease take other locks when the server comes back with %s',
  async (change) => {
    const state = newState()
    const token = 'sellers-'.padEnd(30, 'x')
    const tokensFile = join(temporaryFolder(), 'tokens')
    writeFileSync(tokensFile, `sellers ${hashToken(token)} acquire,read *\n`, { mode: 0o600 })
    const [before, after] = change.startsWith('no') ? [{ tokensFile }, {}] : [{}, { tokensFile }]
    const first = await serve({ state, ...before })
    const holdfast = new Holdfast(holdfastStore(first.url, { token }))
    afterwards(() => holdfast.close())
    const leader = await holdfast.mutex('leader').acquire({ ttl: 6000 })
    await restarted(first, state, after)
    // With its next renewal it shows that it is the same program.
    const take = (): Promise<boolean> =>
      holdfast
        .mutex('other')
        .acquire({ wait: 1000 })
        .then(
          (other) => other.release().then(() => true),
          () => false,
        )
    await eventually('it takes another lock', take, 8000)
    expect(leader.held).toBe(true)
    await leader.release()
  },
)
