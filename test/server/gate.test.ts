import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { describe, expect, it } from 'vitest'

import { hashToken, parseTokens, startServer } from '../../src/server/index.ts'
import type { RunningServer, ServerOptions } from '../../src/server/index.ts'
import type { Right } from '../../src/server/rights.ts'
import { holdfastStore, openHoldfastStore } from '../../src/stores/holdfast/index.ts'
import { afterwards, call, eventually, listen, look, raw, serve, temporaryFolder } from './helpers.ts'

const POST = { 'content-type': 'application/json', 'holdfast-request': '1' }

function tokensFile(lines: readonly string[]): string {
  const path = join(temporaryFolder(), 'tokens')
  writeFileSync(path, lines.join('\n'), { mode: 0o600 })
  return path
}

/** A token long enough to be one. */
const tokenFor = (name: string): string => `${name}-${'x'.repeat(32)}`
const bearer = (name: string): Record<string, string> => ({ authorization: `Bearer ${tokenFor(name)}` })

async function serveWithTokens(
  lines: readonly string[],
  options: ServerOptions = {},
): Promise<RunningServer> {
  const file = tokensFile(
    lines.map((line) => {
      const [name = '', ...rest] = line.split(' ')
      return [name, hashToken(tokenFor(name)), ...rest].join(' ')
    }),
  )
  return serve({ tokensFile: file, ...options })
}

describe('where it listens', () => {
  it('is this machine only, unless told otherwise', async () => {
    const { DEFAULT_LISTEN } = await import('../../src/server/listen.ts')
    expect(DEFAULT_LISTEN).toBe('127.0.0.1:7420')
  })

  it('is no public address without TLS and tokens, unless it is told that the network is trusted', async () => {
    const tokens = tokensFile([`a ${hashToken(tokenFor('a'))} admin *`])
    for (const host of ['0.0.0.0', '[::]', '192.0.2.1', 'example.com']) {
      await expect(startServer({ listen: `${host}:0` })).rejects.toThrow('without TLS and tokens')
      await expect(startServer({ listen: `${host}:0`, tokensFile: tokens })).rejects.toThrow('without TLS')
    }
    const server = await serve({ listen: '0.0.0.0:0', insecure: true })
    expect((await call(server, 'GET /v1/health')).status).toBe(200)
  })

  it('is a socket file that only its owner can use', async () => {
    const path = join(temporaryFolder(), 'locks.sock')
    const server = await serve({ listen: `unix:${path}`, state: null })
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect((await call(server, 'GET /v1/health', { socketPath: path })).status).toBe(200)
  })

  it('is no socket with a path that the system would cut off', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'x'.repeat(100))
    await expect(startServer({ listen: `unix:${path}`, state: null })).rejects.toThrow(
      'longer than the system',
    )
    expect(readdirSync(folder)).toEqual([])
    expect(() => holdfastStore(`holdfast+unix:${path}`)).toThrow('at most')
  })

  it('takes the place of a socket file whose server is dead, and never of one that answers', async () => {
    const path = join(temporaryFolder(), 'locks.sock')
    const killed = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`
    expect(spawnSync(process.execPath, ['-e', killed, path]).signal).toBe('SIGKILL')
    expect(existsSync(path)).toBe(true)
    await serve({ listen: `unix:${path}`, state: null })
    await expect(startServer({ listen: `unix:${path}`, state: null })).rejects.toThrow('EADDRINUSE')
  })

  it.skipIf(spawnSync('openssl', ['version']).status !== 0)('can be wrapped in TLS', async () => {
    const folder = temporaryFolder()
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
    const made = spawnSync('openssl', [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '2',
      '-keyout',
      key,
      '-out',
      cert,
      ...subject,
    ])
    expect(made.status).toBe(0)
    const server = await serveWithTokens(['a admin *'], {
      tls: { key: readFileSync(key), cert: readFileSync(cert) },
    })
    expect(server.url).toMatch(/^holdfasts:/)
    const ca = readFileSync(cert, 'utf8')
    const store = await openHoldfastStore(server.url, { token: tokenFor('a'), ca })
    afterwards(() => store.close())
    expect(store.capabilities.queue).toBe(true)
    // An unknown certificate is not believed.
    await expect(openHoldfastStore(server.url, { token: tokenFor('a') })).rejects.toThrow('did not answer')
    // Who never says more than a part of a handshake is gone after five seconds.
    const silent = raw(server, '\x16\x03\x01\x02')
    expect(await Promise.race([silent, sleep(12_000, 'still there', { ref: false })])).toBe('')
  })
})

describe('every request', () => {
  const routes = [
    'GET /v1/health',
    'GET /v1/ready',
    'GET /v1/metrics',
    'GET /v1/locks',
    'GET /v1/locks/a',
    'GET /v1/events',
    'GET /v1/openapi.json',
    'POST /v1/acquire',
    'POST /v1/renew',
    'POST /v1/release',
    'POST /v1/force-release',
    'GET /v1/session',
    'GET /nothing',
  ]

  it('must be addressed to a host that the server answers to', async () => {
    const server = await serve({ hosts: ['locks.internal'] })
    for (const route of routes) {
      for (const host of [
        'evil.example',
        'localhost.evil.example',
        '127.0.0.1.nip.io',
        'user@localhost',
        '',
      ]) {
        const { status, body } = await call(server, route, {
          headers: { host: host === '' ? ' ' : host },
          body: route.startsWith('POST') ? { name: 'a' } : undefined,
        })
        expect([status, body.error.code], `${route} ${host}`).toEqual([421, 'WRONG_HOST'])
      }
    }
    for (const host of ['localhost', 'LOCALHOST:7420', '127.0.0.1:1', '[::1]', 'locks.internal']) {
      expect((await call(server, 'GET /v1/health', { headers: { host } })).status, `${host}`).toBe(200)
    }
    expect((await look(server, 'a')).holders).toEqual([])
  })

  it('are not kept out by hosts and origins that no request could ever name', async () => {
    for (const host of ['a.b:7420', 'https://a.b', 'a.b/', '*', '*.a.b', '::1', '', 'a b', 'me@a.b'])
      await expect(serve({ hosts: [host] })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    for (const origin of [
      '*',
      'a.b',
      'https://a.b/',
      'https://A.b',
      'https://a.b:443',
      'https://*.a.b',
      'null',
      '',
    ])
      await expect(serve({ origins: [origin] })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    const hosts = ['a.b', 'A.B', '10.0.0.1', '[fd00::1]', 'a_b']
    await serve({ hosts, origins: ['https://a.b', 'http://localhost:3000', 'capacitor://localhost'] })
  })

  it('must not come from a page of another site', async () => {
    const server = await serve({ origins: ['https://dashboard.example'] })
    const body = { name: 'a' }
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: 'http://localhost:7420' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]) {
      for (const route of routes) {
        const { status, body: answer } = await call(server, route, {
          headers,
          body: route.startsWith('POST') ? body : undefined,
        })
        expect([status, answer.error.code], `${route} ${JSON.stringify(headers)}`).toEqual([
          403,
          'WRONG_ORIGIN',
        ])
      }
    }
    expect((await look(server, 'a')).holders).toEqual([])
    const allowed = { origin: 'https://dashboard.example', 'sec-fetch-site': 'cross-site' }
    expect((await call(server, 'GET /v1/health', { headers: allowed })).status).toBe(200)
  })

  it('that changes something needs a header that a web page cannot send, and JSON that says so', async () => {
    const server = await serve()
    for (const route of ['acquire', 'renew', 'release', 'force-release']) {
      const bare = await call(server, `POST /v1/${route}`, {
        headers: { 'holdfast-request': '' },
        body: { name: 'a' },
      })
      expect([bare.status, bare.body.error.code]).toEqual([400, 'HEADER_MISSING'])
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', '']) {
        const other = await call(server, `POST /v1/${route}`, {
          headers: { 'content-type': type },
          body: { name: 'a' },
        })
        expect([other.status, other.body.error.code], `${type}`).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
      }
    }
    expect((await look(server, 'a')).holders).toEqual([])
  })

  it('with two lengths, a folded header or a broken line is turned away without effect', async () => {
    const server = await serve()
    const body = JSON.stringify({ name: 'a' })
    const head = `POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nholdfast-request: 1\r\n`
    for (const more of [
      `content-length: ${body.length}\r\ntransfer-encoding: chunked\r\n`,
      `content-length: ${body.length}\r\ncontent-length: 2\r\n`,
      `transfer-encoding: chunked, identity\r\n`,
      `content-length: +${body.length}\r\n`,
      `x: a\r\n b\r\ncontent-length : ${body.length}\r\n`,
    ]) {
      expect(await raw(server, `${head}${more}\r\n${body}`), `${more}`).toMatch(/^HTTP\/1\.1 400 /)
    }
    expect((await look(server, 'a')).holders).toEqual([])
  })

  it('that nobody expects is answered without a stack and without a side effect', async () => {
    const server = await serve()
    for (const [line, code] of [
      ['GET /v1/acquire', 'METHOD_NOT_ALLOWED'],
      ['DELETE /v1/locks/a', 'METHOD_NOT_ALLOWED'],
      ['OPTIONS /v1/acquire', 'METHOD_NOT_ALLOWED'],
      ['GET /', 'NOT_FOUND'],
      ['GET //evil/v1/locks', 'NOT_FOUND'],
      ['GET /v1/locks/%ff', 'INVALID_ARGUMENT'],
      ['GET /v1/locks/', 'INVALID_ARGUMENT'],
      ['GET /v1/locks?limit=x', 'INVALID_ARGUMENT'],
      ['GET /v1/locks?surprise=1', 'INVALID_ARGUMENT'],
    ] as const) {
      const { text, body, headers } = await call(server, line)
      expect(body.error.code, `${line}`).toBe(code)
      expect(text).not.toMatch(/\bat .*:\d+|node:|src\//)
      expect(headers['access-control-allow-origin']).toBeUndefined()
    }
  })
})

describe('tokens', () => {
  it('are needed for everything but health, readiness and the description', async () => {
    const server = await serveWithTokens(['a admin *'])
    for (const open of ['health', 'ready', 'openapi.json']) {
      expect((await call(server, `GET /v1/${open}`)).status).toBe(200)
    }
    const wrong = [
      {},
      { authorization: 'Bearer' },
      { authorization: `Basic ${tokenFor('a')}` },
      bearer('b'),
      { authorization: `Bearer ${tokenFor('a')}x` },
    ]
    for (const headers of wrong) {
      for (const route of ['GET /v1/locks', 'GET /v1/locks/a', 'GET /v1/metrics', 'GET /v1/events']) {
        const { status, headers: got } = await call(server, route, { headers })
        expect([status, got['www-authenticate']]).toEqual([401, 'Bearer'])
      }
      for (const route of ['acquire', 'renew', 'release', 'force-release']) {
        const { status } = await call(server, `POST /v1/${route}`, {
          headers: { ...POST, ...headers },
          body: { name: 'a' },
        })
        expect(status).toBe(401)
      }
    }
    expect((await call(server, 'GET /v1/locks', { headers: bearer('a') })).body).toEqual({ names: [] })
  })

  it('are not taken from the address', async () => {
    const server = await serveWithTokens(['a admin *'])
    const { status } = await call(
      server,
      `GET /v1/locks?token=${tokenFor('a')}&access_token=${tokenFor('a')}`,
    )
    expect(status).toBe(401)
  })

  it('open a session only with the right one, and the refusal is final', async () => {
    const server = await serveWithTokens(['a admin *'])
    const store = holdfastStore(server.url, { token: tokenFor('b') })
    afterwards(() => store.close())
    expect(await store.inspect('x', 2000)).toMatchObject({ kind: 'unknown', retryable: false })
    const good = await openHoldfastStore(server.url.replace('//', `//:${tokenFor('a')}@`))
    afterwards(() => good.close())
    expect(await good.inspect('x', 2000)).toMatchObject({ name: 'x' })
  })

  it('are kept as hashes, compared in full, and must be long', () => {
    expect(hashToken('correct horse battery staple')).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(() => hashToken('short')).toThrow('at least 22')
    const tokens = parseTokens(
      `# people\na ${hashToken(tokenFor('a'))} read * # all\n\nb ${hashToken(tokenFor('b'))} acquire,read jobs x/`,
    )
    expect(tokens.principalOf(tokenFor('b'))?.name).toBe('b')
    expect(tokens.principalOf(tokenFor('c'))).toBeNull()
  })

  it('come from a file that says what is wrong with it, and that nobody else can change', () => {
    const hash = hashToken(tokenFor('a'))
    for (const [text, problem] of [
      ['', 'no entry'],
      [`a ${hashToken('x'.repeat(22))} read jobs train:*`, '"train:*" is a pattern'],
      ['a plain read *', 'sha256'],
      [`a ${hash} fly *`, '"fly"'],
      [`a ${hash} read`, 'no prefix'],
    ] as const) {
      expect(() => parseTokens(text)).toThrow(problem)
    }
    const path = tokensFile([`a ${hash} read *`])
    chmodSync(path, 0o666)
    return expect(startServer({ listen: '127.0.0.1:0', tokensFile: path })).rejects.toThrow('chmod go-w')
  })
})

describe('rights', () => {
  const policies: readonly (readonly [
    name: string,
    rights: readonly Right[],
    prefixes: readonly string[],
  ])[] = [
    ['reader', ['read'], ['*']],
    ['worker', ['acquire'], ['jobs']],
    ['both', ['acquire', 'read'], ['jobs/', 'mail']],
    ['breaker', ['force-release'], ['jobs']],
    ['admin', ['admin'], ['jobs']],
  ]
  const names = ['jobs', 'jobs/a', 'jobs:a', 'jobs-a', 'jobsa', 'job', 'mail', 'mail/x', 'mailbox', 'other']
  const within = (name: string, prefix: string): boolean =>
    prefix === '*' ||
    name === prefix ||
    (prefix.endsWith('/')
      ? name.startsWith(prefix)
      : name.startsWith(`${prefix}/`) || name.startsWith(`${prefix}:`))
  const verbs: readonly (readonly [Right, string, (name: string) => unknown])[] = [
    ['read', 'GET /v1/locks/', () => undefined],
    ['acquire', 'POST /v1/acquire', (name) => ({ name })],
    ['acquire', 'POST /v1/renew', (name) => ({ name, lease: 'a.b' })],
    ['acquire', 'POST /v1/release', (name) => ({ name, lease: 'a.b' })],
    ['force-release', 'POST /v1/force-release', (name) => ({ name, reason: 'test' })],
  ]

  it('count for whole segments of names, for every verb, and are refused in the same words whether a name is used or not', async () => {
    const server = await serveWithTokens(
      policies.map(([name, rights, prefixes]) => `${name} ${rights.join(',')} ${prefixes.join(' ')}`),
    )
    for (const [who, rights, prefixes] of policies) {
      for (const name of names) {
        for (const [right, line, body] of verbs) {
          const path = line.endsWith('/') ? `${line}${encodeURIComponent(name)}` : line
          const { status, body: answer } = await call(server, path, {
            headers: bearer(who),
            body: body(name),
          })
          const may =
            (rights.includes(right) || rights.includes('admin')) &&
            prefixes.some((prefix) => within(name, prefix))
          expect(status === 403, `${who} ${path} ${name}: ${status}`).toBe(!may)
          const refusal = { code: 'FORBIDDEN', message: `This token may not ${right} that name.` }
          expect(may ? refusal : answer.error).toEqual(refusal)
        }
      }
    }
  })

  it('hide names that a token may not read, from the list and its cursor', async () => {
    const server = await serveWithTokens(['root admin *', 'some read public'])
    const requests = ['public/1', 'secret/1', 'secret/2', 'public/2', 'secret/3']
    for (const name of requests)
      await call(server, 'POST /v1/acquire', { headers: bearer('root'), body: { name } })
    const seen: string[] = []
    let cursor = ''
    do {
      const { text, body } = await call(server, `GET /v1/locks?limit=1${cursor}`, { headers: bearer('some') })
      expect(text).not.toContain('secret')
      const page = body as unknown as { names: string[]; cursor?: string }
      seen.push(...page.names)
      cursor = page.cursor === undefined ? '' : `&cursor=${page.cursor}`
      expect(Buffer.from(page.cursor ?? '', 'base64url').toString('latin1')).not.toContain('secret')
    } while (cursor !== '')
    expect(seen).toEqual(['public/1', 'public/2'])
    expect((await call(server, 'GET /v1/metrics', { headers: bearer('some') })).status).toBe(403)
    const forged = await call(server, `GET /v1/locks?cursor=${Buffer.from('secret').toString('base64url')}`, {
      headers: bearer('some'),
    })
    expect(forged.body.error.code).toBe('NOT_FOUND')
  })

  it('hide what happens to names that a token may not read', async () => {
    const server = await serveWithTokens(['root admin *', 'some read public'])
    const heard = await listen(server, '/v1/events', bearer('some'))
    for (const name of ['secret/1', 'public/1']) {
      await call(server, 'POST /v1/acquire', { headers: bearer('root'), body: { name } })
    }
    await eventually('the other one is told', () => heard.text.includes('public/1'))
    expect(heard.text).not.toContain('secret')
  })

  it('count in a session as they do in requests', async () => {
    const server = await serveWithTokens(['worker acquire jobs'])
    const store = holdfastStore(server.url, { token: tokenFor('worker') })
    afterwards(() => store.close())
    const claim = {
      id: 'session.1',
      weight: 1,
      capacity: 1,
      ttl: 5000,
      patience: 5000,
      tokens: 1,
      whenBusy: 'try',
      owner: 'me',
    } as const
    expect(await store.claim({ ...claim, name: 'jobs/1' }, 2000)).toMatchObject({ kind: 'held' })
    const no = { kind: 'unknown', retryable: false }
    expect(await store.claim({ ...claim, name: 'jobsters' }, 2000)).toMatchObject(no)
    expect(await store.withdraw({ name: 'other', id: 'a.b' }, 2000)).toMatchObject(no)
    expect(await store.inspect('jobs/1', 2000)).toMatchObject(no)
    expect(await store.list({}, 2000)).toEqual({ names: [] })
  })
})

describe("a claim's secret", () => {
  it('is shown to nobody by requests, and in sessions only to who made it and to administrators', async () => {
    const server = await serveWithTokens(['root admin *', 'one acquire,read *', 'two acquire,read *'])
    const open = (who: string): ReturnType<typeof holdfastStore> => {
      const store = holdfastStore(server.url, { token: tokenFor(who) })
      afterwards(() => store.close())
      return store
    }
    const id = 'very-secret-session.7'
    const request = {
      name: 'a',
      id,
      weight: 1,
      capacity: 1,
      ttl: 5000,
      patience: 5000,
      tokens: 1,
      whenBusy: 'queue',
      owner: 'me',
    } as const
    const one = open('one')
    await one.claim(request, 2000)
    await one.claim({ ...request, id: 'very-secret-session.8' }, 2000)
    for (const who of ['root', 'one', 'two']) {
      const { text } = await call(server, 'GET /v1/locks/a', { headers: bearer(who) })
      expect(text).toContain('"owner":"me"')
      expect(text).not.toContain('very-secret')
    }
    expect(JSON.stringify(await idsOf(one))).toContain(id)
    expect(JSON.stringify(await idsOf(open('root')))).toContain(id)
    expect(JSON.stringify(await idsOf(open('two')))).not.toContain('very-secret')
  })

  async function idsOf(store: ReturnType<typeof holdfastStore>): Promise<string[]> {
    const info = await store.inspect('a', 2000)
    if ('kind' in info) throw new Error('no answer')
    expect([info.holders.length, info.waiters.length]).toEqual([1, 1])
    return [...info.holders, ...info.waiters].map(({ id }) => id)
  }
})

it('takes no request with two hosts: whoever stands in front may go by the other one', async () => {
  const server = await serve()
  const [one, two] = ['host: localhost\r\n', 'host: evil.example\r\n']
  const ask = (hosts: string): Promise<string> =>
    raw(server, `GET /v1/health HTTP/1.1\r\n${hosts}connection: close\r\n\r\n`)
  expect(await ask(one)).toContain('HTTP/1.1 200')
  expect(await ask(one + two)).toContain('HTTP/1.1 421')
  expect(await ask(one + one)).toContain('HTTP/1.1 421')
})

it('takes no request with more headers than it sees: a second host may be behind them', async () => {
  const server = await serve()
  const ask = (count: number, last: string): Promise<string> => {
    const more = Array.from({ length: count }, (_, index) => `x-${index}: 1\r\n`).join('')
    return raw(
      server,
      `GET /v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${more}${last}\r\n`,
    )
  }
  expect(await ask(61, '')).toContain('HTTP/1.1 200')
  expect(await ask(60, 'origin: https://evil.example\r\n')).toContain('HTTP/1.1 403')
  for (const last of ['', 'host: evil.example\r\n', 'origin: https://evil.example\r\n'])
    for (const count of [63, 64, 90]) expect(await ask(count, last)).toContain('HTTP/1.1 413')
})
