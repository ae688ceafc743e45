import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterEach, expect, it } from 'vitest'

import { endAll, lockServer, run, tempFolder } from './cli.ts'

afterEach(endAll)

const folder = tempFolder()

it('makes a token that the server knows by the line that was printed, and shows it nowhere', async () => {
  const out = join(folder, 'sellers.token')
  const { code, stdout, stderr } = await run(['token', 'new', 'sellers', 'train:', '--out', out])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(/^sellers sha256:[0-9a-f]{64} acquire,read train:\n$/)
  expect(statSync(out).mode & 0o777).toBe(0o600)
  expect(stdout).not.toContain(readFileSync(out, 'utf8').trim())
  const tokens = join(folder, 'tokens')
  writeFileSync(tokens, stdout, { mode: 0o600 })
  const server = await lockServer('--tokens-file', tokens)
  try {
    const take = (name: string): ReturnType<typeof run> =>
      run(['run', name, '-w0', '--token-file', out, '--', 'true'], { url: server.url })
    expect((await take('train:G101')).code).toBe(0)
    expect((await take('plane')).code).toBe(77)
  } finally {
    server.kill('SIGKILL')
  }
})

it.each([
  [['new', 'a', '*'], 64],
  [['old', 'a', '*', '--out', join(folder, 'x')], 64],
  [['new', 'a', '*', '--rights', 'all', '--out', join(folder, 'x')], 64],
  [['new', 'a b', '*', '--out', join(folder, 'x')], 64],
  [['new', 'a', '*', '--out', join(folder, 'no', 'such')], 71],
])('refuses %j', async (args, expected) => {
  const { code, stdout } = await run(['token', ...args])
  expect([code, stdout]).toEqual([expected, ''])
})
