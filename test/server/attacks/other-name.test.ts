import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { hashToken } from '../../../src/server/index.ts'
import type { AuditEntry } from '../../../src/server/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { serve, temporaryFolder } from '../helpers.ts'
import { openSession } from './session.ts'

/** An id under a name that it was not claimed for: the store knows nothing of it, and the server must change nothing. */

const TOKENS = { mallory: 'mallory-0123456789-0123456789', victim: 'victim-0123456789-0123456789' }

function tokensFile(): string {
  const path = join(temporaryFolder(), 'tokens')
  const line = (who: keyof typeof TOKENS, names: string): string =>
    `${who} ${hashToken(TOKENS[who])} acquire,read ${names}\n`
  writeFileSync(path, line('mallory', 'mine/') + line('victim', 'theirs/'), { mode: 0o600 })
  return path
}

const claim = (name: string, id: string): Record<string, unknown> => {
  const times = { ttl: 60_000, patience: 60_000 }
  return { name, id, weight: 1, capacity: 1, ...times, tokens: 1, whenBusy: 'queue', owner: 'o' }
}

const WAYS: Record<string, (name: string, id: string) => [string, unknown]> = {
  release: (name, id) => ['release', { name, id }],
  withdraw: (name, id) => ['withdraw', { name, id }],
  renew: (name, id) => ['renew', [{ name, id, ttl: 1000, patience: 1000, tokens: 1 }]],
}
const STORES = {
  'its own memory': () => ({ state: null }),
  'a store behind it': () => ({ store: memoryStore() }),
}
const MATRIX = Object.keys(WAYS).flatMap((way) => Object.keys(STORES).map((store) => [way, store] as const))
const optionsOf = (store: string): object => STORES[store as keyof typeof STORES]()

it.each(MATRIX)(
  'counts a lease that only a %s under another name tried to end, with %s',
  async (way, store) => {
    const server = await serve({ ...optionsOf(store), limits: { leasesPerPrincipal: 3 } })
    const session = await openSession(server)
    const kinds: unknown[] = []
    for (let index = 0; index < 6; index++) {
      kinds.push((await session.ask('claim', claim(`n${index}`, `s.${index}`)))['kind'])
      const [operation, payload] = WAYS[way]?.('another', `s.${index}`) ?? []
      await session.ask(String(operation), payload)
    }
    expect(kinds).toEqual(['held', 'held', 'held', 'unknown', 'unknown', 'unknown'])
  },
)

it.each(MATRIX)(
  'leaves a session and its records alone at a %s by a stranger, with %s',
  async (way, store) => {
    const audit: AuditEntry[] = []
    const server = await serve({
      ...optionsOf(store),
      tokensFile: tokensFile(),
      audit: (entry) => void audit.push(entry),
    })
    const victim = await openSession(server, TOKENS.victim)
    const mallory = await openSession(server, TOKENS.mallory)
    await victim.ask('claim', claim('theirs/1', 's.1'))
    await victim.ask('claim', claim('theirs/1', 's.2'))
    for (const id of ['s.1', 's.2']) {
      const [operation, payload] = WAYS[way]?.('mine/none', id) ?? []
      await mallory.ask(String(operation), payload)
    }
    expect(await mallory.ask('watch', 's')).toMatchObject({ code: 'FORBIDDEN' })
    expect(await mallory.ask('claim', claim('mine/1', 's.3'))).toMatchObject({ code: 'FORBIDDEN' })
    expect(await victim.ask('watch', 's')).toEqual({ kind: 'done' })
    expect(audit.filter(({ what }) => what === 'end')).toEqual([])
  },
)
