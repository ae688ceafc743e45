import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'

import { expect, it } from 'vitest'

import { hashToken, parseTokens } from '../../src/server/index.ts'
import type { ClaimRequest, StoreEvent } from '../../src/core/contract.ts'
import type { LogEntry, RunningServer } from '../../src/server/index.ts'
import { holdfastStore } from '../../src/stores/holdfast/index.ts'
import { afterwards, call, eventually, listen, look, portOf, serve, temporaryFolder } from './helpers.ts'

const tokenOf = (name: string): string => `${name}-`.padEnd(30, 'x')
const bearer = (name: string): Record<string, string> => ({ authorization: `Bearer ${tokenOf(name)}` })
const line = (name: string, rights = 'acquire,read', prefixes = '*', token = tokenOf(name)): string =>
  `${name} ${hashToken(token)} ${rights} ${prefixes}\n`

const CLAIM = {
  weight: 1,
  capacity: 1,
  ttl: 60_000,
  patience: 60_000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'me',
} as const

interface Scene {
  readonly server: RunningServer
  readonly log: LogEntry[]
  readonly write: (...lines: string[]) => void
}

async function scene(...lines: string[]): Promise<Scene> {
  const tokensFile = join(temporaryFolder(), 'tokens')
  const write = (...wished: string[]): void => writeFileSync(tokensFile, wished.join(''), { mode: 0o600 })
  write(...lines)
  const log: LogEntry[] = []
  return { server: await serve({ tokensFile, log: (entry) => void log.push(entry) }), log, write }
}

const statusOf = async (server: RunningServer, name: string): Promise<number> =>
  (await call(server, 'GET /v1/locks', { headers: bearer(name) })).status

it('lets new tokens in and old ones out, and says so', async () => {
  const { server, log, write } = await scene(line('old'), line('stays'))
  expect([await statusOf(server, 'old'), await statusOf(server, 'new')]).toEqual([200, 401])
  write(line('stays'), line('new'))
  expect(server.reload()).toEqual([{ part: 'tokens', error: null }])
  expect(await statusOf(server, 'old')).toBe(401)
  expect([await statusOf(server, 'stays'), await statusOf(server, 'new')]).toEqual([200, 200])
  expect(log.filter(({ event }) => event === 'reload')).toMatchObject([{ level: 'info', what: 'tokens' }])
})

it.each([
  ['a word that is no hash', 'who sha1:00 acquire *\n'],
  ['nothing', '\n'],
  ['one token twice', line('old') + line('new') + line('old')],
])('keeps the old tokens when the file holds %s', async (_, text) => {
  const { server, log, write } = await scene(line('old'))
  write(text)
  expect(server.reload()).toMatchObject([{ part: 'tokens', error: { code: 'INVALID_ARGUMENT' } }])
  expect(await statusOf(server, 'old')).toBe(200)
  expect(log).toMatchObject([{ level: 'error', event: 'reload', what: 'tokens' }])
})

it('keeps the old tokens when others may change the file', async () => {
  const tokensFile = join(temporaryFolder(), 'tokens')
  writeFileSync(tokensFile, line('old'), { mode: 0o600 })
  const server = await serve({ tokensFile })
  chmodSync(tokensFile, 0o666)
  expect(server.reload()[0]?.error?.message).toContain('chmod')
  expect(await statusOf(server, 'old')).toBe(200)
})

it('disconnects who has a token that is gone: sessions, event streams and waits', async () => {
  const { server, write } = await scene(line('gone'), line('stays'), line('ops', 'admin'))
  const headers = bearer('gone')
  const lost = holdfastStore(server.url, { token: tokenOf('gone') })
  const kept = holdfastStore(server.url, { token: tokenOf('stays') })
  for (const store of [lost, kept]) afterwards(() => store.close())
  expect(await lost.list({}, 2000)).toHaveProperty('names')
  expect(await kept.list({}, 2000)).toHaveProperty('names')
  const events = await listen(server, '/v1/events', headers)
  const body = { name: 'a', ttl: 60_000 }
  expect((await call(server, 'POST /v1/acquire', { body, headers })).status).toBe(200)
  const waiting = call(server, 'POST /v1/acquire', { body: { ...body, wait: 30_000 }, headers })
  const cut = waiting.then(
    ({ text }) => text,
    (error: Error) => error.message,
  )
  const asOps = async (): Promise<number> => {
    const { text } = await call(server, 'GET /v1/metrics', { headers: bearer('ops') })
    return Number(/^holdfast_waiting\{.*\} (\d+)$/m.exec(text)?.[1])
  }
  await eventually('it waits', async () => (await asOps()) === 1)
  write(line('stays'), line('ops', 'admin'))
  server.reload()
  expect(await cut).toMatch(/ECONNRESET|hang up/)
  expect(await lost.list({}, 2000)).toMatchObject({ kind: 'unknown' })
  expect(await kept.list({}, 2000)).toHaveProperty('names')
  await eventually('it has left the line', async () => (await asOps()) === 0)
  await call(server, 'POST /v1/acquire', { body: { name: 'b' }, headers: bearer('stays') })
  expect(events.text).not.toContain('"b"')
})

it('takes rights away, and gives others, on connections that are open', async () => {
  const { server, write } = await scene(line('who', 'acquire,read', 'mine/'))
  const store = holdfastStore(server.url, { token: tokenOf('who') })
  afterwards(() => store.close())
  const may = async (name: string): Promise<boolean> => !('kind' in (await store.inspect(name, 2000)))
  expect([await may('mine/a'), await may('yours/a')]).toEqual([true, false])
  write(line('who', 'acquire,read', 'yours/'))
  server.reload()
  await eventually('it is connected again', async () => may('yours/a'))
  expect(await may('mine/a')).toBe(false)
})

it('costs a program only those leases that its token may not have any more', async () => {
  const { server, write } = await scene(line('who', 'acquire,read', 'mine yours'))
  const headers = bearer('who')
  const store = holdfastStore(server.url, { token: tokenOf('who') })
  afterwards(() => store.close())
  const names = ['mine/1', 'yours/1', 'mine/2', 'yours/2']
  const requests = names.map((name, at): ClaimRequest => ({ ...CLAIM, name, id: `s.${at}` }))
  const renewals = requests.map((request) => ({ ...request, tokens: 0 }))
  for (const request of requests) expect(await store.claim(request, 2000)).toMatchObject({ kind: 'held' })
  write(line('who', 'acquire,read', 'mine'))
  server.reload()
  // All renewals of a process go out together.
  const kinds = async (): Promise<readonly string[]> =>
    (await store.renew(renewals, 2000)).map(({ kind }) => kind)
  await eventually('it is connected again', async () => (await kinds())[0] === 'renewed')
  expect(await kinds()).toEqual(['renewed', 'unknown', 'renewed', 'unknown'])
  const leases = requests.map(({ name, id }) => ({ name, lease: id, ttl: 60_000 }))
  const { body } = await call(server, 'POST /v1/renew', { body: { leases }, headers })
  expect(body).toMatchObject({
    leases: ['renewed', 'unknown', 'renewed', 'unknown'].map((outcome) => ({ outcome })),
  })
  const none = { leases: leases.filter(({ name }) => name.startsWith('yours')) }
  expect((await call(server, 'POST /v1/renew', { body: none, headers })).status).toBe(403)
})

it('leaves alone who may do what it could before: its connections, leases and places in line', async () => {
  const { server, write } = await scene(line('who'), line('other'))
  const headers = bearer('who')
  const held = await call(server, 'POST /v1/acquire', { body: { name: 'a' }, headers })
  const waiting = call(server, 'POST /v1/acquire', { body: { name: 'a', wait: 30_000 }, headers })
  await eventually('it waits', async () => {
    const { body } = await call(server, 'GET /v1/locks/a', { headers })
    return (body as unknown as { waiters: unknown[] }).waiters.length === 1
  })
  write('# with a comment, and in another order\n', line('new'), line('who', 'read,acquire'))
  server.reload()
  const { lease } = held.body as unknown as { lease: string }
  await call(server, 'POST /v1/release', { body: { name: 'a', lease }, headers })
  expect((await waiting).status).toBe(200)
})

it('opens the audit log again after it was moved away, and goes on with the old one where it cannot', async () => {
  const folder = temporaryFolder()
  const audit = join(folder, 'audit.log')
  const server = await serve({ audit, auditRequired: true })
  const take = async (name: string): Promise<number> =>
    (await call(server, 'POST /v1/acquire', { body: { name } })).status
  await take('first')
  renameSync(audit, `${audit}.1`)
  expect(server.reload()).toEqual([{ part: 'audit', error: null }])
  await take('second')
  expect(readFileSync(`${audit}.1`, 'utf8')).toContain('first')
  expect(readFileSync(audit, 'utf8')).toContain('second')
  renameSync(folder, `${folder}-away`)
  afterwards(() => renameSync(`${folder}-away`, folder))
  expect(server.reload()).toMatchObject([{ part: 'audit', error: { code: 'ENOENT' } }])
  expect(await take('third')).toBe(200)
  expect(readFileSync(join(`${folder}-away`, 'audit.log'), 'utf8')).toContain('third')
})

function certificate(folder: string, name: string): { cert: Buffer; key: Buffer } {
  const [cert, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)]
  const words = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=${name}`
  execFileSync('openssl', [...words.split(' '), '-keyout', key, '-out', cert], { stdio: 'ignore' })
  return { cert: readFileSync(cert), key: readFileSync(key) }
}

it('shows a new certificate to newcomers, and keeps the old one when the new one is no good', async () => {
  const folder = temporaryFolder()
  const [first, second] = [certificate(folder, 'first'), certificate(folder, 'second')]
  const log: LogEntry[] = []
  const server = await serve({ tls: first, log: (entry) => void log.push(entry) })
  const shown = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connectTls(
        { host: '127.0.0.1', port: portOf(server), rejectUnauthorized: false, servername: '' },
        () => {
          const { subject } = socket.getPeerCertificate()
          socket.destroy()
          resolve(String(subject.CN))
        },
      )
      socket.on('error', reject)
    })
  expect(await shown()).toBe('first')
  expect(server.reload({ tls: { cert: second.cert, key: first.key } })).toMatchObject([
    { part: 'certificate', error: { code: 'INVALID_ARGUMENT' } },
  ])
  expect(server.reload({ tls: { cert: 'no', key: 'no' } })[0]?.error).not.toBeNull()
  expect(await shown()).toBe('first')
  expect(server.reload({ tls: second })).toEqual([{ part: 'certificate', error: null }])
  expect(await shown()).toBe('second')
  expect(log.map(({ level }) => level)).toEqual(['error', 'error', 'info'])
})

it('has nothing to do where there are no files', async () => {
  const server = await serve()
  expect(server.reload()).toEqual([])
  expect(await look(server, 'a')).toMatchObject({ holders: [] })
})

it('refuses a token that stands in two lines, and says in which', () => {
  const twice = `# who\n${line('a', 'acquire', 'train:')}${line('b')}\n${line('a', 'read')}`
  expect(() => parseTokens(twice)).toThrow('the same token in lines 2 and 5')
  expect(() => parseTokens(line('a') + line('b', 'read', '*', tokenOf('a')))).toThrow('lines 1 and 2')
  // One name may have several tokens: that is how they are changed without a pause.
  expect(parseTokens(line('a') + line('a', 'read', '*', tokenOf('b'))).size).toBe(2)
})

/** Any file after any other: whoever is in both with the same rights stays, and everybody else is told, once. */
it('tells everybody whose line changed or is gone, and nobody else, whatever the files say', () => {
  let seed = 7
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  const names = ['a', 'b', 'c']
  for (let round = 0; round < 300; round++) {
    // Each token has at most one line.
    const file = (): Map<string, string> =>
      new Map(
        ['one', 'two', 'three']
          .filter(() => random(4) > 0)
          .map((token) => {
            const name = names[random(3)] ?? 'a'
            return [token, line(name, random(2) === 0 ? 'read' : 'acquire', '*', tokenOf(token))]
          }),
      )
    const spare = line('spare', 'read', '*', tokenOf('spare'))
    let now = file()
    const tokens = parseTokens(spare + [...now.values()].join(''))
    for (let step = 0; step < 4; step++) {
      const told: string[] = []
      for (const token of now.keys()) {
        const principal = tokens.principalOf(tokenOf(token))
        principal?.whenChanged.clear()
        principal?.whenChanged.add(() => void told.push(token))
      }
      const next = file()
      tokens.replace(parseTokens([...next.values()].reverse().join('') + spare))
      const changed = [...now].filter(([token, words]) => next.get(token) !== words).map(([token]) => token)
      expect(told.sort()).toEqual(changed.sort())
      for (const token of ['one', 'two', 'three'])
        expect(tokens.principalOf(tokenOf(token)) === null).toBe(!next.has(token))
      now = next
    }
  }
})

it('lets a program that holds a lease go on when its principal gets another name', async () => {
  const { server, write } = await scene(line('sellers'), line('ops', 'admin'))
  const store = holdfastStore(server.url, { token: tokenOf('sellers') })
  afterwards(() => store.close())
  const request = (name: string): ClaimRequest => ({ ...CLAIM, name, id: `session.${name}` })
  expect(await store.watch('session', () => undefined, 2000)).toMatchObject({ kind: 'watching' })
  expect(await store.claim(request('leader'), 2000)).toMatchObject({ kind: 'held' })
  // Nobody else can use its session, neither before nor after.
  const other = holdfastStore(server.url, { token: tokenOf('ops') })
  afterwards(() => other.close())
  expect(await other.claim(request('theirs'), 2000)).toMatchObject({ kind: 'unknown', retryable: false })

  write(line('ticket-sellers', 'acquire,read', '*', tokenOf('sellers')), line('ops', 'admin'))
  server.reload()
  // By a renewal it shows that it is the same program.
  await eventually('it is connected again', async () => {
    const [answer] = await store.renew([{ ...request('leader'), tokens: 0 }], 2000)
    return answer?.kind === 'renewed'
  })
  expect(await store.claim(request('another'), 2000)).toMatchObject({ kind: 'held' })
  expect(await store.watch('session', () => undefined, 2000)).toMatchObject({ kind: 'watching' })
  expect(await other.claim(request('theirs'), 2000)).toMatchObject({ kind: 'unknown', retryable: false })
})

it('lets a program that only waits go on when its principal gets another name, and tells it of its turn', async () => {
  const { server, write } = await scene(line('sellers'), line('ops', 'admin'))
  const [store, other] = ['sellers', 'ops'].map((name) => holdfastStore(server.url, { token: tokenOf(name) }))
  if (store === undefined || other === undefined) throw new Error('no stores')
  for (const one of [store, other]) afterwards(() => one.close())
  const request = (name: string, session: string): ClaimRequest => ({
    ...CLAIM,
    whenBusy: 'queue',
    name,
    id: `${session}.${name}`,
  })
  const events: StoreEvent[] = []
  await store.watch('session', (event) => void events.push(event), 2000)
  expect(await other.claim(request('taken', 'theirs'), 2000)).toMatchObject({ kind: 'held' })
  expect(await store.claim(request('taken', 'session'), 2000)).toMatchObject({ kind: 'queued' })

  write(line('ticket-sellers', 'acquire,read', '*', tokenOf('sellers')), line('ops', 'admin'))
  server.reload()
  // By a sign of life it shows that it is the same program.
  await eventually('it is connected again', async () => {
    const [answer] = await store.renew([{ ...request('taken', 'session'), tokens: 0 }], 2000)
    return answer?.kind === 'queued'
  })
  expect(await store.claim(request('another', 'session'), 2000)).toMatchObject({ kind: 'held' })
  await eventually('it listens again', () => events.some(({ kind }) => kind === 'gap'))
  await other.release({ name: 'taken', id: 'theirs.taken' }, undefined, 2000)
  await eventually('it is told', () => events.some(({ kind }) => kind === 'granted'))
})
