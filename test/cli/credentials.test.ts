import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

import { COMMANDS } from '../../src/cli/commands.ts'
import { endAll, holdfast, lockServer, run, tempFolder } from './cli.ts'

/** Each command that takes a store, on one with a certificate and tokens of its own: what it says when it got in. */
const WORDS: Readonly<
  Record<string, { readonly args: readonly string[]; readonly says: string | RegExp } | null>
> = {
  run: { args: ['x', '--', 'echo', 'in'], says: 'in' },
  acquire: { args: ['y', '--print', 'token'], says: /^\d{16}$/ },
  release: { args: ['--force', 'nobody', '--reason', 'a test'], says: 'Nobody holds' },
  ls: { args: ['nobody'], says: 'No locks are held' },
  inspect: { args: ['nobody'], says: 'Nobody holds' },
  doctor: { args: [], says: 'a second client is kept out' },
  conformance: { args: ['--only', 'claim/free'], says: '1 passed' },
  demo: { args: ['--sellers', '2', '--tickets', '10'], says: 'with holdfast' },
  // For databases alone.
  tidy: null,
  // Below, for it does not end; and in its own tests.
  serve: null,
  lab: null,
}

describe.skipIf(spawnSync('openssl', ['version']).status !== 0)('a lock server with TLS and tokens', () => {
  const folder = tempFolder()
  const [key, cert, token, tokens] = ['key.pem', 'cert.pem', 'token', 'tokens'].map((file) =>
    join(folder, file),
  ) as [string, string, string, string]
  const trusting = ['--token-file', token, '--ca-file', cert]
  let server: Awaited<ReturnType<typeof lockServer>>
  beforeAll(async () => {
    const words =
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1'
    spawnSync('openssl', [...words.split(' '), '-keyout', key, '-out', cert])
    const { stdout } = await run(['token', 'new', 'ops', '*', '--rights', 'admin', '--out', token])
    writeFileSync(tokens, stdout, { mode: 0o600 })
    server = await lockServer('--tls-cert', cert, '--tls-key', key, '--tokens-file', tokens)
  })
  afterAll(() => server.kill('SIGKILL'))
  afterEach(endAll)

  it('knows every command that takes certificates to trust', async () => {
    const taking = await Promise.all(
      Object.entries(COMMANDS).map(async ([name, { load }]) =>
        'ca-file' in (await load()).spec.options ? [name] : [],
      ),
    )
    expect(taking.flat().sort()).toEqual(Object.keys(WORDS).sort())
  })

  it.each(Object.entries(WORDS).flatMap(([name, words]) => (words === null ? [] : [{ name, ...words }])))(
    'lets holdfast $name in',
    async ({ name, args, says }) => {
      const at = args.indexOf('--')
      const all = at < 0 ? [...args, ...trusting] : [...args.slice(0, at), ...trusting, ...args.slice(at)]
      const { code, stdout, stderr } = await run([name, ...all], { url: server.url })
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout.trim()).toMatch(says)
    },
  )

  it('lets a server in front of it in', async () => {
    const front = holdfast(['serve', '--listen', '127.0.0.1:0', '--store', server.url, ...trusting])
    expect(await front.says('Listening')).toContain('holdfast://')
  })
})
