import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'

import { afterEach, expect, it, vi } from 'vitest'

import { hashToken } from '../../src/server/index.ts'
import { endAll, holdfast, program, run, tempFolder } from './cli.ts'

afterEach(endAll)

const folder = tempFolder()
const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

interface Line {
  readonly level: string
  readonly event: string
  readonly what?: string
}

it('reads tokens again and opens its logs again by SIGHUP, says what it did, and serves on', async () => {
  const [old, fresh] = ['o'.repeat(30), 'n'.repeat(30)]
  const tokens = file('tokens', `who ${hashToken(old)} acquire,read *\n`)
  const [log, audit] = [join(folder, 'log'), join(folder, 'audit')]
  const config = file(
    'config.json',
    JSON.stringify({
      listen: '127.0.0.1:0',
      state: null,
      tokensFile: 'tokens',
      audit: { file: 'audit' },
      log: { file: 'log', format: 'json' },
    }),
  )
  const server = holdfast(['serve', '--config', config])
  const url = /holdfast:\/\/\S+/.exec(await server.says('Listening'))?.[0]
  const take = async (token: string): Promise<unknown> =>
    (await run(['run', 'a', '-w0', '--token-file', file(`token-${token[0]}`, token), '--', 'true'], { url }))
      .code
  expect([await take(old), await take(fresh)]).toEqual([0, 77])

  renameSync(log, `${log}.1`)
  renameSync(audit, `${audit}.1`)
  writeFileSync(tokens, `who ${hashToken(fresh)} acquire,read *\n`)
  server.kill('SIGHUP')
  const linesOf = (path: string): readonly Line[] =>
    existsSync(path)
      ? readFileSync(path, 'utf8')
          .trim()
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line) as Line)
      : []
  await vi.waitUntil(() => linesOf(log).length >= 3, { timeout: 10_000 })
  expect(linesOf(log)).toMatchObject(
    ['log', 'tokens', 'audit'].map((what) => ({ level: 'info', event: 'reload', what })),
  )
  expect([await take(old), await take(fresh)]).toEqual([77, 0])
  expect(linesOf(`${log}.1`).map(({ event }) => event)).toEqual(['start', 'ready', 'refused'])
  expect(linesOf(audit).length).toBeGreaterThan(0)

  // A broken file changes nothing, and is told.
  writeFileSync(tokens, 'nonsense\n')
  server.kill('SIGHUP')
  await vi.waitUntil(() => linesOf(log).some(({ level }) => level === 'error'), { timeout: 10_000 })
  expect(linesOf(log).find(({ level }) => level === 'error')).toMatchObject({
    event: 'reload',
    what: 'tokens',
  })
  expect(await take(fresh)).toBe(0)
  server.kill('SIGTERM')
  expect(await server.end()).toBe(0)
})

it('goes on with the old certificate, and reads the tokens, when the new one is not there', async () => {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const words =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost'
  expect(spawnSync('openssl', [...words.split(' '), '-keyout', key, '-out', cert]).status).toBe(0)
  const tokens = file('tokens-tls', `who ${hashToken('t'.repeat(30))} acquire *\n`)
  const options = ['--tls-cert', cert, '--tls-key', key, '--tokens-file', tokens, '--log-format', 'json']
  const server = holdfast(['serve', '--listen', '127.0.0.1:0', '--state', 'none', ...options])
  await server.says('Listening at holdfasts:')
  server.kill('SIGHUP')
  await server.says('The certificate was read again')
  renameSync(cert, `${cert}.away`)
  server.kill('SIGHUP')
  await server.says('The old certificate stays')
  expect(server.stderr).toContain('ENOENT')
  expect(server.stderr.match(/The tokens were read again/g)).toHaveLength(2)
})

it('serves on when nobody reads what it says any more', async () => {
  const server = holdfast(['serve', '--listen', '127.0.0.1:0', '--state', 'none'])
  const http = /http:\/\/[^/]+/.exec(await server.says('Listening'))?.[0] ?? ''
  server.process.stderr?.destroy()
  const foreign = await fetch(`${http}/v1/locks`, { headers: { origin: 'https://evil.example' } })
  expect(foreign.status).toBe(403)
  expect((await fetch(`${http}/v1/ready`)).status).toBe(200)
  server.kill('SIGTERM')
  expect(await server.end()).toBe(0)
})

it.skipIf(spawnSync('python3', ['-c', 'import pty']).status !== 0)(
  'ends with the terminal that it was started at',
  () => {
    const log = join(folder, 'terminal.log')
    // The master's end is closed, which is what a closed window does.
    const script = `
import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b''
while b'Listening' not in said: said += os.read(fd, 1000)
os.kill(pid, 1)
time.sleep(0.5)
if os.waitpid(pid, os.WNOHANG)[0] != 0: sys.exit('it did not live through SIGHUP')
os.close(fd)
for _ in range(100):
    done, status = os.waitpid(pid, os.WNOHANG)
    if done: print('ended'); sys.exit(0)
    time.sleep(0.1)
os.kill(pid, 9)
sys.exit('it did not end')
`
    const command = [
      process.execPath,
      program,
      'serve',
      '--listen',
      '127.0.0.1:0',
      '--state',
      'none',
      '--log',
      log,
    ]
    const { stdout, stderr } = spawnSync('python3', ['-c', script, ...command], {
      encoding: 'utf8',
      timeout: 30_000,
    })
    expect([stdout, stderr]).toEqual(['ended\n', ''])
    // Not by its exit code: Node itself may crash on its way out when its terminal is gone.
    expect(readFileSync(log, 'utf8')).toMatch(/ info stopped\n$/)
  },
)
