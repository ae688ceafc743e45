import { connect } from 'node:net'

import { expect, it } from 'vitest'

import { afterwards, portOf, raw, serve } from '../helpers.ts'

/** What Node would answer by itself, without the gate, the rate limit and the turns. */

const request = (field: string, host = 'localhost'): string =>
  `GET /v1/health HTTP/1.1\r\nhost: ${host}\r\n${field}\r\n`
const statusesOf = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, code = '']) => code)

it('answers an expectation that it does not know once, and closes the connection', async () => {
  const server = await serve({ state: null })
  const got = await raw(server, request('expect: x\r\n').repeat(3))
  expect(statusesOf(got)).toEqual(['417'])
  expect(got).toContain('EXPECTATION_FAILED')
  expect(got.toLowerCase()).toContain('connection: close')
})

it.each([
  ['expect: x\r\n', 'evil.example', '421'],
  ['expect: 100-continue\r\n', 'evil.example', '421'],
  ['origin: http://evil.example\r\nexpect: x\r\n', 'localhost', '403'],
])('lets nobody past the gate for an expectation: %j of %s', async (field, host, status) => {
  const server = await serve({ state: null })
  const last = request('connection: close\r\n', host)
  expect(statusesOf(await raw(server, request(field, host) + last))[0]).toBe(status)
})

it('counts them: who expects too often is told so', async () => {
  const server = await serve({ state: null, limits: { requestsPerSecond: 1 } })
  const statuses: string[] = []
  for (let index = 0; index < 4; index++)
    statuses.push(...statusesOf(await raw(server, request('expect: x\r\n'))))
  expect(statuses.slice(0, 2)).toEqual(['417', '417'])
  expect(statuses).toContain('429')
})

it.each(['expect: x\r\n', 'expect: 100-continue\r\n'])(
  'ends a connection that sends a thousand at once: %j',
  async (field) => {
    const server = await serve({ state: null })
    const socket = connect(portOf(server), '127.0.0.1')
    afterwards(() => socket.destroy())
    socket.on('error', () => undefined)
    let answers = 0
    socket.on('data', (bytes: Buffer) => (answers += statusesOf(bytes.toString('latin1')).length))
    socket.write(request(field).repeat(1000))
    await new Promise((resolve) => void socket.once('close', resolve))
    expect(answers).toBeLessThan(70)
  },
)

it('asks for the body of who wants to be asked, and only then', async () => {
  const server = await serve({ state: null })
  const body = '{"name":"a"}'
  const head = (type: string): string =>
    `POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\nholdfast-request: 1\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n`
  expect(statusesOf(await raw(server, head('application/json') + body))).toEqual(['100', '200'])
  expect(statusesOf(await raw(server, head('text/plain')))).toEqual(['415'])
})

it('says itself that a host is missing', async () => {
  const server = await serve({ state: null })
  const got = await raw(server, 'GET /v1/health HTTP/1.1\r\nconnection: close\r\n\r\n')
  expect(got).toContain('WRONG_HOST')
})
