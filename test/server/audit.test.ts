import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import { hashToken } from '../../src/server/index.ts'
import type { AuditEntry } from '../../src/server/index.ts'
import { networkOf } from '../../src/server/network.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { afterwards, call, portOf, serve, take, temporaryFolder } from './helpers.ts'

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

it('has a line for some of the refusals of all strangers, says how many it left out, and has room for those of others', async () => {
  const lines: AuditEntry[] = []
  const tokensFile = join(temporaryFolder(), 'tokens')
  const token = 'known-'.padEnd(30, 'x')
  writeFileSync(tokensFile, `known ${hashToken(token)} read mine/\n`, { mode: 0o600 })
  const server = await serve({ tokensFile, state: null, audit: (entry) => void lines.push(entry) })
  const refusals = (): AuditEntry[] => lines.filter(({ result }) => result.startsWith('refused'))
  // From as many addresses as this machine has, and no more from each than has lines.
  const began = performance.now()
  const request = 'GET /v1/locks HTTP/1.1\r\nhost: localhost\r\n'
  await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const localAddress = `127.0.1.${index + 1}`
      const socket = connect({ port: portOf(server), host: '127.0.0.1', localAddress })
      socket.write(`${`${request}\r\n`.repeat(14)}${request}connection: close\r\n\r\n`)
      socket.resume()
      await new Promise((resolve) => void socket.once('close', resolve))
    }),
  )
  const strangers = refusals().length
  expect(strangers).toBeGreaterThanOrEqual(200)
  expect(strangers).toBeLessThanOrEqual(201 + (performance.now() - began) / 10)
  const denied = { headers: { authorization: `Bearer ${token}` } }
  expect((await call(server, 'GET /v1/locks/theirs', denied)).status).toBe(403)
  expect(refusals().at(-1)).toMatchObject({ who: 'known', result: 'refused: FORBIDDEN' })
  const leftOut = lines
    .filter(({ what }) => what === 'refusals')
    .reduce((sum, { count = 0 }) => sum + count, 0)
  expect(leftOut).toBe(1500 - strangers)
})

it('counts addresses of IPv6 by their networks', () => {
  expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64')
  expect(networkOf('2001:db8::1')).toBe('2001:db8:0:0::/64')
  expect(networkOf('fe80::1%eth0')).toBe('fe80:0:0:0::/64')
  expect(networkOf('::1')).toBe('0:0:0:0::/64')
  for (const same of ['10.0.0.7', '::ffff:10.0.0.7', 'unix']) expect(networkOf(same)).toBe(same)
})
