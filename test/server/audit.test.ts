import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import type { AuditEntry } from '../../src/server/index.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { afterwards, call, serve, take, temporaryFolder } from './helpers.ts'

it('has a line for every call that changes something, with who, what, whence and the outcome, and no secret', async () => {
  const path = join(temporaryFolder(), 'audit.jsonl')
  const server = await serve({ audit: path })
  const { lease, token } = await take(server, { name: 'a', owner: 'me' })
  await call(server, 'POST /v1/acquire', { body: { name: 'a' } })
  await call(server, 'POST /v1/renew', { body: { name: 'a', lease } })
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  const store = holdfastStore(server.url)
  afterwards(() => store.close())
  await store.withdraw({ name: 'a', id: 'secret-session.1' }, 2000)
  await store.downgrade?.({ name: 'a', id: 'secret-session.1' }, 2000)
  await call(server, 'GET /v1/locks/a')
  await server.close({ grace: 50 })

  const text = readFileSync(path, 'utf8')
  const entries = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as AuditEntry)
  expect(entries.map(({ what, result }) => `${what} ${result}`)).toEqual([
    'start recording',
    'claim held',
    'claim busy',
    'renew done',
    'release released',
    'release not-held',
    'withdraw not-held',
    'downgrade lost',
  ])
  expect(entries[1]).toMatchObject({ who: 'anybody', remote: '127.0.0.1', name: 'a', token: String(token) })
  expect(new Set(entries.map(({ request }) => request)).size).toBe(7)
  // The same claim can be followed through the log, but not used.
  expect(entries[4]?.claim).toBe(entries[1]?.claim)
  for (const secret of [...lease.split('.'), 'secret-session']) expect(text).not.toContain(secret)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

it('writes names that would break a line or a terminal in a form that does not', async () => {
  const entries: AuditEntry[] = []
  const server = await serve({ audit: (entry) => void entries.push(entry) })
  for (const name of ['a\nb', '\u001b[31mred', 'x\u0000']) {
    expect((await call(server, 'POST /v1/acquire', { body: { name } })).status).toBe(400)
  }
  await take(server, { name: '\u202e"quoted"' })
  expect(entries.map(({ what }) => what)).toEqual(['start', 'claim'])
  expect(JSON.stringify(entries[1])).toContain('\\"quoted\\"')
})

it('can be made a condition: what cannot be recorded is not granted', async () => {
  const path = join(temporaryFolder(), 'no-such-folder', 'audit.jsonl')
  const server = await serve({ audit: path, auditRequired: true })
  const { status, headers, body } = await call(server, 'POST /v1/acquire', { body: { name: 'a' } })
  expect([status, headers['retry-after'], body.error.code]).toEqual([503, '5', 'AUDIT_UNAVAILABLE'])
})
