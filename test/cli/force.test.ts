import { createServer } from 'node:http'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

import { afterEach, expect, it } from 'vitest'

import { run } from './cli.ts'

/** `release --force` at an address where something else answers, or something hostile. */

const undo: (() => void)[] = []
afterEach(() => {
  for (const step of undo.splice(0)) step()
})

async function at(handler: RequestListener): Promise<string> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  undo.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `holdfast://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const CASES: readonly (readonly [string, RequestListener])[] = [
  ['a page of a proxy', (_, response) => void response.writeHead(502).end('<html>Bad Gateway</html>')],
  ['null', (_, response) => void response.end('null')],
  ['another shape', (_, response) => void response.end('{"revoked":7}')],
  ['another shape of holders', (_, response) => void response.end('{"revoked":[{"owner":7}]}')],
  [
    'half an answer',
    (_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{')
      setTimeout(() => response.destroy(), 100)
    },
  ],
  [
    'an answer without an end',
    (_, response) => {
      const timer = setInterval(() => response.write(' '), 200)
      response.on('close', () => clearInterval(timer))
    },
  ],
]

it.each(CASES)('says that it is no lock server: %s', async (_, handler) => {
  const { code, stdout, stderr } = await run(['release', '--force', 'x', '--reason', 'y'], {
    url: await at(handler),
  })
  expect([code, stdout]).toEqual([69, ''])
  expect(stderr).not.toBe('')
  expect(stderr).not.toMatch(/\n\s+at /)
})

it('spells out what would speak to the terminal', async () => {
  const revoked = [{ owner: '\u001b[31mred\u001b[2J', token: '1' }]
  const url = await at((_, response) => void response.end(JSON.stringify({ revoked })))
  const { code, stdout } = await run(['release', '--force', 'x', '--reason', 'y'], { url })
  expect(code).toBe(0)
  expect(stdout).toBe('Took "x" away from \\u001b[31mred\\u001b[2J, token 1.\n')
})
