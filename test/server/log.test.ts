import { expect, it } from 'vitest'

import type { Store } from '../../src/core/contract.ts'
import type { LogEntry, ServerOptions } from '../../src/server/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { call, serve } from './helpers.ts'
import { openSession } from './attacks/session.ts'

async function logged(
  options: ServerOptions,
): Promise<{ log: LogEntry[]; server: Awaited<ReturnType<typeof serve>> }> {
  const log: LogEntry[] = []
  return { log, server: await serve({ ...options, log: (entry) => void log.push(entry) }) }
}

it('tells of refusals: what was asked, by whom, from where, why, and under which number', async () => {
  const { log, server } = await logged({})
  await call(server, 'GET /v1/locks', { headers: { host: 'evil.example' } })
  await call(server, 'POST /v1/acquire', { body: { name: '' } })
  expect(log).toHaveLength(1)
  expect(log[0]).toMatchObject({
    level: 'warn',
    event: 'refused',
    code: 'WRONG_HOST',
    what: 'GET /v1/locks',
    who: 'anybody',
    remote: '127.0.0.1',
    request: expect.stringMatching(/^[0-9a-f]{8}-\d+$/) as unknown,
  })
})

it('tells of a few refusals a second only, and counts all of them', async () => {
  const { log, server } = await logged({})
  for (let number = 0; number < 200; number++)
    await call(server, 'GET /v1/locks', { headers: { host: 'evil.example' } })
  expect(log.length).toBeGreaterThanOrEqual(20)
  expect(log.length).toBeLessThan(100)
  const { text } = await call(server, 'GET /v1/metrics')
  expect(text).toMatch(/holdfast_refusals_total\{.*code="WRONG_HOST"\} 200/)
})

it('tells of its own mistakes with the number that the client was told, over HTTP and in sessions', async () => {
  const good = memoryStore()
  const fail = (): never => {
    throw new TypeError('a mistake of ours')
  }
  const store: Store = { ...good, kind: good.kind, capabilities: good.capabilities, inspect: fail }
  const { log, server } = await logged({ store })
  const { status, body } = await call(server, 'GET /v1/locks/a')
  expect(status).toBe(500)
  expect(body.error.message).not.toContain('a mistake of ours')
  const session = await openSession(server)
  await session.ask('inspect', 'a')
  expect(log).toMatchObject([
    {
      level: 'error',
      event: 'internal',
      message: 'a mistake of ours',
      stack: expect.stringContaining('log.test') as unknown,
    },
    { level: 'error', event: 'internal', message: 'a mistake of ours' },
  ])
  expect(body.error.message).toContain(log[0]?.request)
})
