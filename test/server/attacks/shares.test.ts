import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { hashToken } from '../../../src/server/index.ts'
import { resolveLimits } from '../../../src/server/limits.ts'
import { Load } from '../../../src/server/load.ts'
import type { LongPolls } from '../../../src/server/long-polls.ts'
import { ANYBODY } from '../../../src/server/rights.ts'
import type { Call } from '../../../src/server/route.ts'
import { leaseRoutes } from '../../../src/server/routes/leases.ts'
import { operationRoutes } from '../../../src/server/routes/operations.ts'
import type { LockService } from '../../../src/server/service.ts'
import type { Sessions } from '../../../src/server/sessions.ts'
import { Shares } from '../../../src/server/shares.ts'
import { StreamCounts } from '../../../src/server/stream-counts.ts'
import type { Hello } from '../../../src/stores/holdfast/wire.ts'
import { temporaryFolder } from '../helpers.ts'
import { openSession } from './session.ts'
import { victim } from './victim.ts'

/** What the sessions of one principal use of the server together, and what is left for another. */

const [CROWD, OTHER] = ['c'.repeat(30), 'o'.repeat(30)]
const SESSIONS = 40
const LINES = 150
const RENEWALS = 100

it('a principal with one session has its turns between those of one with many, whatever they ask', async () => {
  const tokensFile = join(temporaryFolder(), 'tokens')
  const line = (name: string, token: string): string => `${name} ${hashToken(token)} acquire ${name}\n`
  writeFileSync(tokensFile, line('crowd', CROWD) + line('other', OTHER), { mode: 0o600 })
  const { server } = await victim({ tokensFile }, 512)
  const other = await openSession(server, OTHER)
  const crowd = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(server, CROWD)))
  const leases = Array.from({ length: RENEWALS }, (_, at) => ({ name: `crowd:${at}`, id: `s.${at}` }))
  for (const { name, id } of leases) {
    const claim = { weight: 1, capacity: 1, ttl: 60_000, patience: 5000, tokens: 1, owner: 'o' }
    await crowd[0]?.ask('claim', { ...claim, name, id, whenBusy: 'try' })
  }
  const renewals = leases.map((lease) => ({ ...lease, ttl: 60_000, patience: 5000, tokens: 0 }))
  let answered = 0
  const asked = crowd.flatMap((session) =>
    Array.from({ length: LINES }, async () => {
      expect(await session.ask('renew', renewals)).toHaveLength(RENEWALS)
      answered++
    }),
  )
  let turns = 0
  const began = performance.now()
  while (answered < asked.length) {
    await other.ask('ping', null)
    turns++
  }
  const seconds = (performance.now() - began) / 1000
  await Promise.all(asked)
  // After every 20 ms of the crowd, which a busy machine makes longer. Were it 20 ms for each of its sessions, it would be one a second.
  expect(turns / seconds).toBeGreaterThan(4)
})

const asked = { query: new URLSearchParams(), rest: '', onGone: () => undefined }

it.each([
  ['/v1/operations', { operations: [{ operation: 'ping' }] }],
  ['/v1/keep', { operations: [{ operation: 'renew', payload: [] }] }],
  ['/v1/renew', { leases: [{ name: 'a', lease: 'a.b', ttl: 1000 }] }],
])('%s of a principal waits for its share, as a line of its sessions does', async (path, body) => {
  const service = {
    limits: resolveLimits(),
    load: new Load(),
    shares: new Shares(),
    book: { ttlOf: () => undefined },
    renew: (_caller: unknown, wishes: readonly unknown[]) => wishes.map(() => ({ kind: 'lost' })),
    onStop: new Set(),
  } as unknown as LockService
  const sessions = {} as Sessions
  const counts = new StreamCounts(service.limits)
  const hello = {} as Hello
  const routes = [
    ...operationRoutes({ service, sessions, counts, hello }),
    ...leaseRoutes(service, {} as LongPolls),
  ]
  const caller = { principal: ANYBODY, remote: 'here', request: '1' }
  const done: string[] = []
  // Its sessions have used what there is in this turn.
  service.shares.of(ANYBODY).spend(1000)
  const answer = Promise.resolve(
    routes.find((one) => one.path === path)?.handle({ ...asked, caller, body } as unknown as Call),
  ).then((reply) => {
    done.push('answer')
    return reply
  })
  // All that needs no other turn of the loop is done by then.
  await new Promise((resolve) => process.nextTick(() => void Promise.resolve().then(resolve)))
  for (let step = 0; step < 20; step++) await Promise.resolve()
  done.push('turn')
  expect(await answer).toMatchObject({ status: 200 })
  expect(done).toEqual(['turn', 'answer'])
})

it('a share passes on what its work throws, at once or later', async () => {
  const share = new Shares().of(ANYBODY)
  const fail = (): never => {
    throw new Error('mine')
  }
  expect(() => share.take(fail)).toThrow('mine')
  share.spend(1000)
  await expect(share.take(fail)).rejects.toThrow('mine')
})
