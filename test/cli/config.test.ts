import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterEach, describe, expect, it } from 'vitest'

import { DEFAULT_LIMITS } from '../../src/server/index.ts'
import { endAll, holdfast, run, tempFolder } from './cli.ts'
import type { Ended } from './cli.ts'

afterEach(endAll)

const folder = tempFolder()
let number = 0

function configFile(content: unknown): string {
  const path = join(folder, `config-${number++}.json`)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 })
  return path
}

const check = (content: unknown, ...more: string[]): Promise<Ended> =>
  run(['serve', '--check', '--config', configFile(content), ...more])

describe('serve --config', () => {
  it('starts as the file says, and the command line wins over it', async () => {
    const socket = join(folder, 'locks.sock')
    const path = configFile({
      listen: '127.0.0.1:1',
      state: null,
      limits: { maxTtl: 2000 },
      log: { format: 'json' },
    })
    const server = holdfast(['serve', '--config', path, '--listen', `unix:${socket}`])
    await server.says('Listening at holdfast+unix:')
    const url = `holdfast+unix:${socket}`
    const { code, stderr } = await run(['run', 'a', '--ttl', '5s', '--', 'true'], { url })
    expect([code, stderr]).toEqual([64, expect.stringMatching(/ttl/)])
    expect((await run(['run', 'a', '--ttl', '2s', '--', 'true'], { url })).code).toBe(0)
    server.kill('SIGTERM')
    expect(await server.end()).toBe(0)
    const lines = server.stderr.trim().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual([
      'start',
      'ready',
      'stopping',
      'stopped',
    ])
  })

  it('is refused with limits that contradict each other, also by --check', async () => {
    const { code, stderr } = await check({ state: null, limits: { requestTimeout: 5000 } })
    expect([code, stderr]).toEqual([64, expect.stringContaining('limits.headersTimeout')])
    const both = { requestTimeout: 30_000, headersTimeout: 20_000 }
    expect((await check({ state: null, limits: both })).code).toBe(0)
  })

  it('takes file names from its own folder', async () => {
    mkdirSync(join(folder, 'sub'))
    const path = join(folder, 'sub', 'config.json')
    writeFileSync(path, JSON.stringify({ state: 'state.json', audit: { file: 'audit.log' } }), {
      mode: 0o600,
    })
    const { code, stdout } = await run(['serve', '--check', '--config', path])
    expect(code).toBe(0)
    expect(stdout).toContain(`state in ${join(folder, 'sub', 'state.json')}`)
    expect(stdout).toContain(`audit log in ${join(folder, 'sub', 'audit.log')}`)
  })

  it.each([
    ['a misspelt key', { listne: 'x' }, ['listne: is not known. Did you mean "listen"?']],
    ['a misspelt key in a group', { tls: { crt: 'x' } }, ['tls.crt: is not known. Did you mean "cert"?']],
    ['a misspelt limit', { limits: { maxTTl: 1 } }, ['limits.maxTTl: is not known. Did you mean "maxTtl"?']],
    ['a key that is like none', { xyzzy: 1 }, ['xyzzy: is none of listen, hosts']],
    ['a limit of the wrong kind', { limits: { body: 'x' } }, ['limits.body: must be', 'between 1 and']],
    ['a text for a list', { hosts: 'a,b' }, ['hosts: must be a list of texts; got another text']],
    ['a host with a port', { hosts: ['locks.internal:7420'] }, ['hosts: ', 'without a port']],
    ['an origin that no browser sends', { origins: ['*'] }, ['origins: ', 'as browsers send them']],
    ['a text for a flag', { insecure: 'no' }, ['insecure: must be true or false']],
    ['a level that there is not', { log: { level: 'loud' } }, ['log.level: must be one of "info"']],
    ['half of a pair', { tls: { cert: 'cert.pem' } }, ['tls: needs both cert and key']],
    ['a certificate that is not there', { tls: { cert: 'no', key: 'no' } }, ['tls.cert: ', 'ENOENT']],
    ['tokens that are not there', { tokensFile: 'nowhere' }, ['tokensFile: ', 'ENOENT']],
    ['an address that is none', { listen: 'here' }, ['listen: ', 'host:port']],
    ['an open door', { listen: '0.0.0.0:7420' }, ['listen: ', 'TLS and tokens']],
    ['a rule without its file', { audit: { required: true } }, ['audit.required: needs audit.file']],
    ['two stores', { store: { url: 'redis://a', urlFile: 'b' } }, ['store: has both']],
    ['a store of no scheme that there is', { store: { url: 'foo://x' } }, ['store: ', 'foo:', 'Known: ']],
    ['a folder for a tokens file', { tokensFile: '.' }, ['tokensFile: ', `is a folder: ${folder}`]],
    ['a store that ends with the server', { store: { url: 'memory:' } }, ['store: ', 'Leave the store out']],
    ['a token for no store', { store: { tokenFile: 'b' } }, ['store: needs url']],
    [
      'an audit log in no folder',
      { audit: { file: 'no/where' }, state: null },
      ['audit.file: ', 'no folder'],
    ],
    ['a state file that is none', { state: '/dev/null' }, ['state: ', 'is not a state file']],
    ['a state file that is a folder', { state: '.' }, ['state: ', 'is not a state file']],
    ['a list', [], ['must be an object']],
  ])('refuses %s, and names the file and the key', async (_, content, words) => {
    const { code, stderr, stdout } = await check(content)
    for (const word of words) expect(stderr).toContain(word)
    expect(stderr).toMatch(/^holdfast: \S*config-\d+\.json: /)
    expect([code, stdout]).toEqual([64, ''])
  })

  it('says everything that is wrong at once', async () => {
    const { stderr } = await check({ listne: 'x', hosts: 1, limits: { nothing: 1 } })
    expect(stderr.trim().split('\n')).toHaveLength(3)
  })

  it('shows no value of the file: a secret may have got there by mistake', async () => {
    const secret = 'hunter2hunter2'
    for (const content of [
      { token: secret },
      { tokensFile: [secret] },
      { store: { url: `redis://u:${secret}@h` } },
      { log: { level: secret } },
      { [secret.slice(0, 0) + 'tls']: secret },
      `{ "listen": "${secret}" "x": 1 }`,
      `{ "listen": ${secret} }`,
    ]) {
      const { code, stdout, stderr } = await check(content)
      expect(code).toBe(64)
      expect(stdout + stderr).not.toContain(secret)
    }
  })

  it('says where the JSON breaks', async () => {
    const { stderr } = await check('{\n  "listen": "127.0.0.1:0",\n}')
    expect(stderr).toContain('line 3, column 1')
  })

  it('refuses a file that others may change', async () => {
    const path = configFile({})
    chmodSync(path, 0o666)
    const { code, stderr } = await run(['serve', '--check', '--config', path])
    expect([code, stderr]).toEqual([64, expect.stringContaining('chmod go-w')])
  })

  it('does not start with a file that --check refuses', async () => {
    const { code, stderr } = await run(['serve', '--config', configFile({ tokensFile: 'nowhere' })])
    expect([code, stderr]).toEqual([64, expect.stringContaining('tokensFile: ')])
  })

  it('refuses a --token-file for no store, as without a file', async () => {
    const { code, stderr } = await check({}, '--token-file', 'tokens')
    expect([code, stderr]).toEqual([64, expect.stringContaining('--tokens-file')])
  })

  it('knows every limit that there is', async () => {
    const { code, stdout } = await check({ limits: DEFAULT_LIMITS, state: null }, '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ ok: true })
  })
})
