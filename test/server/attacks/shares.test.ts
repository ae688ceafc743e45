import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { hashToken } from '../../../src/server/index.ts'
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
