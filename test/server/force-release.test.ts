import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { ALL } from '../../src/core/contract.ts'
import { Holdfast } from '../../src/index.ts'
import { hashToken } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { openSession } from './attacks/session.ts'
import { afterwards, call, eventually, look, serve, take, temporaryFolder } from './helpers.ts'
import type { Answer } from './helpers.ts'

it('takes a lock from its holder for a reason, and the next token is larger', async () => {
  const entries: { what: string; reason?: string; who: string }[] = []
  const server = await serve({ audit: (entry) => void entries.push(entry) })
  const first = await take(server, { name: 'a', owner: 'me' })
  const { status, body } = await call(server, 'POST /v1/force-release', {
    body: { name: 'a', reason: 'host is on fire' },
  })
  expect([status, body]).toEqual([200, { name: 'a', revoked: [{ owner: 'me', token: String(first.token) }] }])
  expect((await take(server, { name: 'a' })).token).toBeGreaterThan(first.token)
  const renewed = await call(server, 'POST /v1/renew', { body: { name: 'a', lease: first.lease } })
  expect(renewed.body.error.code).toBe('LOCK_LOST')
  expect(entries).toContainEqual(
    expect.objectContaining({ what: 'force-release', who: 'anybody', reason: 'host is on fire' }),
  )
})

it('takes a lock from a crowd of readers in many turns of the loop: others have theirs in between', async () => {
  const turns: number[] = []
  let turn = 0
  const count = (): void => void (turn++, counting && setImmediate(count))
  let counting = true
  afterwards(() => (counting = false))
  const server = await serve({
    audit: ({ what }) => void (what === 'force-release' && turns.push(turn)),
  })
  const session = await openSession(server)
  const reader = {
    name: 'a',
    weight: 1,
    capacity: ALL,
    ttl: 60_000,
    patience: 5000,
    tokens: 1,
    whenBusy: 'try',
  }
  await Promise.all(
    Array.from({ length: 1000 }, (_, index) => session.ask('claim', { ...reader, id: `s.${index}` })),
  )
  setImmediate(count)
  const { body } = await call(server, 'POST /v1/force-release', { body: { name: 'a', reason: 'r' } })
  expect((body as unknown as { revoked: unknown[] }).revoked).toHaveLength(1000)
  expect(turns).toHaveLength(1000)
  expect(new Set(turns).size).toBeGreaterThanOrEqual(5)
})

it('needs a reason', async () => {
  const server = await serve()
  await take(server, { name: 'a' })
  for (const reason of [undefined, '', 7, 'a\nb', 'x'.repeat(2000)]) {
    const { status } = await call(server, 'POST /v1/force-release', { body: { name: 'a', reason } })
    expect(status).toBe(400)
  }
  expect((await look(server, 'a')).holders).toHaveLength(1)
})

it('takes only the lease with the token it is given, and says when nobody has it', async () => {
  const server = await serve()
  const one = await take(server, { name: 'rw', mode: 'shared', owner: 'one' })
  await take(server, { name: 'rw', mode: 'shared', owner: 'two' })
  const stale = await call(server, 'POST /v1/force-release', {
    body: { name: 'rw', reason: 'r', token: '1' },
  })
  expect([stale.status, stale.body.error.code]).toEqual([404, 'NOT_HELD'])
  await call(server, 'POST /v1/force-release', {
    body: { name: 'rw', reason: 'r', token: String(one.token) },
  })
  expect(await look(server, 'rw')).toMatchObject({ holders: [{ owner: 'two' }] })
})

it('tells the victim at once if it is connected here, and lets the next waiter in', async () => {
  const server = await serve({ store: memoryStore() })
  const store = holdfastStore(server.url)
  const victim = new Holdfast(store)
  const other = new Holdfast(store)
  afterwards(async () => {
    await victim.close()
    await other.close({ drain: 0 })
    await store.close()
  })
  // Whoever has waited once listens from then on.
  const blocker = await other.mutex('a').acquire()
  const waiting = victim.mutex('a').acquire()
  await blocker.release()
  const lease = await waiting
  // Until its pick-up time is over and nothing is due for seconds: then only the message can tell it.
  await eventually('it is renewed', async () => {
    const [holder] = (await look(server, 'a')).holders as { expiresIn: number }[]
    return (holder?.expiresIn ?? 0) > 10_000
  })
  const next = other.mutex('a').acquire({ wait: 10_000 })
  const began = performance.now()
  const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve))
  await call(server, 'POST /v1/force-release', { body: { name: 'a', reason: 'r' } })
  await lost
  expect(performance.now() - began).toBeLessThan(4000)
  expect(lease.held).toBe(false)
  expect((await next).token).toBeGreaterThan(lease.token)
})

it('does not say that nobody holds what a server behind it shows to administrators only', async () => {
  const tokenOf = (who: string): string => `${who}-`.padEnd(30, 'x')
  const tokensFile = join(temporaryFolder(), 'tokens')
  const lines = ['front acquire,read,force-release', 'ops admin', 'client acquire'].map((words) => {
    const [who = '', rights = ''] = words.split(' ')
    return `${who} ${hashToken(tokenOf(who))} ${rights} *\n`
  })
  writeFileSync(tokensFile, lines.join(''), { mode: 0o600 })
  const back = await serve({ tokensFile, state: null })
  const headers = { authorization: `Bearer ${tokenOf('client')}` }
  await call(back, 'POST /v1/acquire', { body: { name: 'money', ttl: 60_000 }, headers })
  const force = async (who: string): Promise<Answer> => {
    const store = holdfastStore(back.url, { token: tokenOf(who) })
    afterwards(() => store.close())
    const front = await serve({ store })
    return call(front, 'POST /v1/force-release', { body: { name: 'money', reason: 'it hangs' } })
  }
  const refused = await force('front')
  expect([refused.status, refused.body.error.code]).toEqual([501, 'UNSUPPORTED'])
  expect(refused.body.error.message).toContain('admin')
  expect((await force('ops')).status).toBe(200)
  expect((await force('ops')).body.error.code).toBe('NOT_HELD')
})
