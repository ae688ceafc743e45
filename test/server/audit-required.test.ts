import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import type { AuditEntry, LogEntry } from '../../src/server/index.ts'
import { LineFile } from '../../src/server/line-file.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { openSession } from './attacks/session.ts'
import type { RawSession } from './attacks/session.ts'
import { afterwards, call, eventually, look, serve, take, temporaryFolder } from './helpers.ts'

const linesOf = (entries: readonly AuditEntry[]): string[] =>
  entries.map(({ what, result }) => `${what} ${result}`)

it('records a grant after a wait, over HTTP and for a session, with its token and its waiter', async () => {
  const entries: AuditEntry[] = []
  const server = await serve({ audit: (entry) => void entries.push(entry) })
  const first = await take(server, { name: 'a' })
  const waiting = take(server, { name: 'a', wait: 10_000 })
  await eventually('it waits', async () => (await look(server, 'a')).waiters.length === 1)
  await call(server, 'POST /v1/release', { body: { name: 'a', lease: first.lease } })
  const second = await waiting
  expect(linesOf(entries)).toEqual([
    'start recording',
    'claim held',
    'claim queued',
    'release released',
    'grant held',
  ])
  expect(entries[4]).toMatchObject({ name: 'a', token: String(second.token), claim: entries[2]?.claim })

  const session = await openSession(server)
  await session.ask('watch', 's')
  const claim = { name: 'a', id: 's.1', weight: 1, capacity: 1, ttl: 5000, patience: 5000, tokens: 1 }
  await session.ask('claim', { ...claim, whenBusy: 'queue', owner: 'o' })
  await call(server, 'POST /v1/release', { body: { name: 'a', lease: second.lease } })
  await eventually('it is told', () => session.events.length > 0)
  await session.ask('renew', [{ name: 'a', id: 's.1', ttl: 5000, patience: 5000, tokens: 1 }])
  // Once, though the renewal that followed heard of it as well.
  expect(linesOf(entries).filter((line) => line === 'grant held')).toHaveLength(2)
})

it('records who was refused, and leases that ended by themselves', async () => {
  const entries: AuditEntry[] = []
  const server = await serve({
    audit: (entry) => void entries.push(entry),
    limits: { leasesPerPrincipal: 1, minTtl: 50 },
  })
  await take(server, { name: 'a', ttl: 50 })
  await call(server, 'POST /v1/acquire', { body: { name: 'b' } })
  await call(server, 'GET /v1/locks', { headers: { origin: 'https://evil.example' } })
  await eventually('it has run out', () => linesOf(entries).includes('end lost'))
  expect(linesOf(entries)).toContain('POST /v1/acquire refused: TOO_MANY')
  expect(linesOf(entries)).toContain('GET /v1/locks refused: WRONG_ORIGIN')
  expect(entries.find(({ what }) => what === 'end')).toMatchObject({ name: 'a', who: 'anybody' })
})

it('has few lines for many refusals: nobody can fill the disk with them', async () => {
  const entries: AuditEntry[] = []
  const server = await serve({ audit: (entry) => void entries.push(entry) })
  const began = performance.now()
  for (let index = 0; index < 200; index++)
    await call(server, 'GET /v1/locks', { headers: { origin: 'https://evil.example' } })
  // Ten a second, however long it took.
  const seconds = Math.ceil((performance.now() - began) / 1000)
  expect(entries.length).toBeLessThan(40 + 11 * seconds)
})

it('takes nothing back that its client was told of, when the same is asked for again and cannot be recorded', async () => {
  let broken = false
  const audit = (): void => {
    if (broken) throw new Error('the database is away')
  }
  const server = await serve({ audit, auditRequired: true })
  const body = { name: 'a', lease: `${'a'.repeat(22)}.${'b'.repeat(22)}`, ttl: 60_000 }
  expect((await call(server, 'POST /v1/acquire', { body })).status).toBe(200)
  broken = true
  expect((await call(server, 'POST /v1/acquire', { body })).body.error.code).toBe('AUDIT_UNAVAILABLE')
  expect((await call(server, 'POST /v1/acquire', { body: { name: 'b' } })).status).toBe(503)
  broken = false
  expect((await look(server, 'a')).holders).toHaveLength(1)
  expect((await look(server, 'b')).holders).toEqual([])
})

it.skipIf(!existsSync('/dev/full'))(
  'grants nothing on a full disk when it must be recorded, over HTTP, for sessions, and to who waits',
  async () => {
    const log: LogEntry[] = []
    const server = await serve({
      audit: '/dev/full',
      auditRequired: true,
      log: (entry) => void log.push(entry),
    })
    const outcomes = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        call(server, 'POST /v1/acquire', { body: { name: `n${index}` } }),
      ),
    )
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([503]))
    const store = holdfastStore(server.url)
    afterwards(() => store.close())
    const claim = { weight: 1, capacity: 1, ttl: 5000, patience: 5000, tokens: 1, owner: 'o' } as const
    expect(await store.claim({ ...claim, name: 'a', id: 's.1', whenBusy: 'try' }, 2000)).toMatchObject({
      kind: 'unknown',
    })
    expect((await call(server, 'GET /v1/locks')).body).toEqual({ names: [] })
    expect(log.map(({ message }) => message)).toEqual([
      expect.stringContaining('audit log cannot be written'),
    ])
    expect((await call(server, 'GET /v1/ready')).body.error.code).toBe('AUDIT_UNAVAILABLE')
  },
)

it('tells nobody of a grant that it could not record, and goes on as soon as it can', async () => {
  let full = false
  const entries: AuditEntry[] = []
  const audit = (entry: AuditEntry): void => {
    if (full) throw new Error('ENOSPC')
    entries.push(entry)
  }
  const server = await serve({ audit, auditRequired: true })
  const { lease } = await take(server, { name: 'a' })
  const waiting = call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 1000 } })
  await eventually('it waits', async () => (await look(server, 'a')).waiters.length === 1)
  full = true
  await call(server, 'POST /v1/release', { body: { name: 'a', lease } })
  expect((await waiting).status).toBeGreaterThanOrEqual(400)
  expect(await look(server, 'a')).toMatchObject({ holders: [], waiters: [] })
  full = false
  await take(server, { name: 'a' })
  expect(entries.at(-1)).toMatchObject({ what: 'claim', result: 'held' })
})

const CLAIM = { name: 'a', weight: 1, capacity: 1, ttl: 5000, patience: 5000, tokens: 1 }
const RENEWAL = { name: 'a', id: 's.1', ttl: 5000, patience: 5000, tokens: 1 }

/** A waiter of the first server is granted the lock while it is connected to nobody, and comes to the second one. */
async function moved(
  audit: (entry: AuditEntry) => void,
): Promise<{ second: RawSession; lines: () => string[] }> {
  const store = memoryStore()
  const entries: AuditEntry[] = []
  const one = await serve({ store, audit: (entry) => void entries.push(entry), auditRequired: true })
  const other = await serve({ store, audit, auditRequired: true })
  const { lease } = await take(one, { name: 'a' })
  const first = await openSession(one)
  await first.ask('claim', { ...CLAIM, id: 's.1', whenBusy: 'queue', owner: 'o' })
  first.socket.destroy()
  await call(one, 'POST /v1/release', { body: { name: 'a', lease } })
  const second = await openSession(other)
  return { second, lines: () => linesOf(entries) }
}

it('records a grant that a session learns of at another server than the one that it asked', async () => {
  const entries: AuditEntry[] = []
  const { second, lines } = await moved((entry) => void entries.push(entry))
  const [answer] = (await second.ask('renew', [RENEWAL])) as unknown as [{ kind: string; token: string }]
  expect(answer.kind).toBe('held')
  await second.ask('renew', [{ ...RENEWAL, tokens: 0 }])
  const grants = [...lines(), ...linesOf(entries)].filter((line) => line === 'grant held')
  expect(grants).toHaveLength(1)
  expect(entries.find(({ what }) => what === 'grant')).toMatchObject({ name: 'a', who: 'anybody' })
})

it('tells nobody of such a grant that it cannot record, and takes nothing away from anybody', async () => {
  let full = false
  const { second } = await moved(() => {
    if (full) throw new Error('ENOSPC')
  })
  full = true
  expect(await second.ask('renew', [RENEWAL])).toMatchObject([{ kind: 'unknown' }])
  full = false
  expect(await second.ask('renew', [RENEWAL])).toMatchObject([{ kind: 'held' }])
})

it.skipIf(!existsSync('/dev/full'))(
  'is not ready with a full disk, though nothing was granted yet',
  async () => {
    const server = await serve({ audit: '/dev/full', auditRequired: true })
    expect((await call(server, 'GET /v1/ready')).body.error.code).toBe('AUDIT_UNAVAILABLE')
  },
)

it('knows that a disk is full before the next line is lost', () => {
  let room = true
  const file = new LineFile(join(temporaryFolder(), 'lines'), () => room)
  afterwards(() => file.close())
  file.add('one\n')
  expect(file.flush()).toBeNull()
  room = false
  expect(file.flush()?.message).toContain('no room')
  room = true
  expect(file.flush()).toBeNull()
})

it.skipIf(process.platform === 'win32')('waits for nobody who does not read a pipe', () => {
  const path = join(temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const file = new LineFile(path)
  afterwards(() => file.close())
  // Nobody has opened it.
  expect(file.flush()?.message).toContain('ENXIO')
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  afterwards(() => closeSync(reader))
  const line = `${'x'.repeat(1023)}\n`
  for (let count = 0; count < 100; count++) file.add(line)
  expect(file.flush()?.message).toContain('EAGAIN')
  // What was read makes room for the rest, from the byte at which it stopped.
  const got: Buffer[] = []
  for (let failure = file.flush(); ; failure = file.flush()) {
    const some = Buffer.alloc(2 ** 17)
    got.push(some.subarray(0, readSync(reader, some)))
    if (failure === null) break
  }
  expect(Buffer.concat(got).toString('latin1')).toBe(line.repeat(100))
})

it('begins a file anew that was deleted, also after it was moved: no grant is recorded where nobody can read it', async () => {
  const folder = temporaryFolder()
  const audit = join(folder, 'audit.log')
  const server = await serve({ audit, auditRequired: true })
  await take(server, { name: 'a' })
  rmSync(audit)
  const { token } = await take(server, { name: 'b' })
  expect(readFileSync(audit, 'utf8')).toContain(String(token))
  renameSync(audit, `${audit}.1`)
  const moved = await take(server, { name: 'c' })
  expect(readFileSync(`${audit}.1`, 'utf8')).toContain(String(moved.token))
  rmSync(`${audit}.1`)
  const last = await take(server, { name: 'd' })
  expect(readFileSync(audit, 'utf8')).toContain(String(last.token))
})

it('writes whole lines again when there is room again', async () => {
  const folder = join(temporaryFolder(), 'later')
  const path = join(folder, 'audit.jsonl')
  const server = await serve({ audit: path, auditRequired: true })
  expect((await call(server, 'POST /v1/acquire', { body: { name: 'a' } })).status).toBe(503)
  mkdirSync(folder)
  await take(server, { name: 'a' })
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  expect(lines.map((line) => (JSON.parse(line) as AuditEntry).result)).toContain('held')
})
