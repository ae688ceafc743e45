import { readFileSync } from 'node:fs'

import { expect, it } from 'vitest'

import { FAILURES } from '../../src/server/failure.ts'
import { openapi } from '../../src/server/openapi/index.ts'
import { description } from './description.ts'
import { call, listen, look, serve, take } from './helpers.ts'
import type { Answer } from './helpers.ts'
import { faults } from './schema.ts'

const { paths, operations, find, undescribed } = description()

it('is given out by the server, and the copy in docs is the same', async () => {
  const server = await serve()
  const { body, headers } = await call(server, 'GET /v1/openapi.json')
  expect(headers['content-type']).toBe('application/json')
  expect(body).toEqual(openapi)
  const copy = readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')
  // When it differs: curl -s http://127.0.0.1:7420/v1/openapi.json > docs/openapi.json && npx oxfmt docs/openapi.json
  expect(JSON.parse(copy)).toEqual(openapi)
})

it('describes every route, and no other', async () => {
  const server = await serve()
  for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
    for (const path of [...Object.keys(paths), '/v1/nothing', '/v1/session/', '/v1', '/']) {
      if (path === '/v1/events' && method === 'GET') continue
      const { status } = await call(
        server,
        `${method} ${path.replace('{name}', 'x')}`,
        method === 'POST' ? { body: {} } : {},
      )
      const known = status !== 404 && status !== 405
      const described = operations.some((one) => one.path === path && one.method === method)
      expect(known, `${method} ${path}: ${status}`).toBe(described)
    }
  }
  await listen(server, '/v1/events')
})

it('has examples that a real server takes, and answers as they say', async () => {
  const server = await serve()
  await take(server, { name: 'job', owner: 'worker 3' })
  let lease = ''
  for (const { path, method, operation } of operations) {
    const [good] = Object.entries(operation.responses)
    const expected = good?.[1].content['application/json']
    if (good?.[0] !== '200' || expected?.example === undefined) continue
    const sent = operation.requestBody?.content['application/json']
    const name = operation.parameters?.find((one) => one.in === 'path')?.example ?? ''
    const body = sent && (JSON.parse(JSON.stringify(sent.example).replace('{lease}', lease)) as unknown)
    const wrong = sent === undefined ? [] : faults(sent.schema, body, find)
    expect(wrong, `${path} example`).toEqual([])
    expect(faults(expected.schema, expected.example, find), `${path} answer example`).toEqual([])
    const answer = await call(server, `${method} ${path.replace('{name}', encodeURIComponent(name))}`, {
      body,
    })
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(200)
    expect(faults(expected.schema, answer.body, find), `${path}`).toEqual([])
    expect(shape(answer.body), `${path}`).toEqual(shape(expected.example))
    if (path === '/v1/acquire') lease = (answer.body as unknown as { lease: string }).lease
  }
  expect(lease).not.toBe('')
  expect((await look(server, 'train:G101')).holders).toEqual([])
})

/** Values that differ from run to run, made alike. */
function shape(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, one: unknown) =>
      ['lease', 'token', 'expiresIn', 'waited'].includes(key) ? typeof one : one,
    ),
  )
}

it('names the failures that routes really answer with', async () => {
  const server = await serve()
  await take(server, { name: 'a' })
  const cases: readonly (readonly [string, unknown])[] = [
    ['POST /v1/acquire', { name: 'a' }],
    ['POST /v1/acquire', { name: 'a', wait: 5 }],
    ['POST /v1/acquire', { name: '' }],
    ['POST /v1/acquire', { name: 'a', mode: 'shared' }],
    ['POST /v1/renew', { name: 'a', lease: 'x.y' }],
    ['POST /v1/release', { name: 'a', lease: 'x.y' }],
    ['POST /v1/force-release', { name: 'b', reason: 'r' }],
    ['GET /v1/locks?limit=0', undefined],
    ['GET /v1/locks?cursor=____', undefined],
    ['POST /v1/acquire', { name: 'a', mode: 'permits', of: 2, permits: 3 }],
  ]
  for (const [line, body] of cases) {
    expect(describes(line, await call(server, line, { body })), `${line}`).toBe(true)
  }
  for (const headers of [{ host: 'evil' }, { origin: 'https://evil' }]) {
    for (const { method, path } of operations) {
      const line = `${method} ${path}`
      expect(
        describes(line, await call(server, line, { headers })),
        `${line} ${JSON.stringify(headers)}`,
      ).toBe(true)
    }
  }
})

function describes(line: string, answer: Answer): boolean {
  const [method = '', path = ''] = line.split('?')[0]?.split(' ') ?? []
  const one = operations.find((each) => each.method === method && each.path === path)
  const { code } = answer.body.error
  return (
    one !== undefined &&
    undescribed(one, answer).length === 0 &&
    FAILURES[code as keyof typeof FAILURES] === answer.status
  )
}
