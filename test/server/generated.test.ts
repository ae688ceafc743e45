import fc from 'fast-check'
import { expect, it } from 'vitest'

import type { RunningServer } from '../../src/server/index.ts'
import { resolveLimits } from '../../src/server/limits.ts'
import { description } from './description.ts'
import type { Described } from './description.ts'
import { allowedBy, nearlyAllowedBy } from './generate.ts'
import { call, serve } from './helpers.ts'
import type { Answer } from './helpers.ts'
import { faults } from './schema.ts'

/**
 * Requests made from the server's own description. What it allows must be taken, what it does not allow must be refused as a
 * mistake of the asker's, and every answer must be one that it describes.
 */

const limits = { maxWait: 15, requestsPerSecond: 100_000 }
const { operations, find, undescribed } = description(resolveLimits(limits))
const asked = operations.filter(({ path }) => path !== '/v1/events')
const at = (path: string): Described => asked.find((one) => one.path === path) ?? fail(path)
const writes = asked.filter(({ operation }) => operation.requestBody !== undefined)
const schemaOf = ({ operation }: Described): Parameters<typeof faults>[0] =>
  operation.requestBody?.content['application/json']?.schema ?? {}

function fail(path: string): never {
  throw new Error(`${path} is not described`)
}

/** Answers to a request that is as it should be: the lock may be busy or gone, but nothing is wrong with the words. */
const TAKEN = [200, 404, 409]
const REFUSED = [400, 413]

/** Some requests are about leases that there are. */
class Leases {
  private readonly known: { name: string; lease: string }[] = []

  mixInto(body: unknown, pick: number): unknown {
    const one = this.known[pick % Math.max(1, this.known.length * 2)]
    if (one === undefined || typeof body !== 'object' || body === null) return body
    // Their names are inside.
    if ('operations' in body || 'session' in body) return body
    if ('leases' in body) return { leases: [...(body.leases as unknown[]).slice(0, 99), one] }
    // A name that somebody holds, with another lease or that one.
    return { ...body, name: one.name, ...('lease' in body && pick % 3 > 0 ? { lease: one.lease } : {}) }
  }

  note({ status, body }: Answer): void {
    const { name, lease } = body as unknown as { name?: string; lease?: string }
    if (status === 200 && name !== undefined && lease !== undefined) this.known.push({ name, lease })
  }
}

const requests = fc.constantFrom(...asked).chain((one) => {
  const { parameters = [], requestBody } = one.operation
  const given = parameters.filter((parameter) => parameter.schema !== undefined)
  const values = given.map(({ schema = {}, in: place }) =>
    place === 'path' ? allowedBy(schema, find) : fc.option(allowedBy(schema, find), { nil: undefined }),
  )
  return fc.record({
    path: fc.constant(one.path),
    parameters: fc.tuple(...values).map((made) =>
      made.map((value, index) => ({
        name: given[index]?.name,
        in: given[index]?.in,
        value: value as string | undefined,
      })),
    ),
    body: requestBody === undefined ? fc.constant(undefined) : allowedBy(schemaOf(one), find),
    pick: fc.nat(),
  })
})

interface Sent {
  readonly path: string
  readonly parameters: readonly {
    readonly name: string | undefined
    readonly in: string | undefined
    readonly value?: string | undefined
  }[]
  readonly body: unknown
}

function send(server: RunningServer, { path, parameters, body }: Sent): Promise<Answer> {
  const { method } = at(path)
  let target = path
  const query: string[] = []
  for (const { name = '', in: place, value } of parameters) {
    if (value === undefined) continue
    if (place === 'path') target = target.replace(`{${name}}`, () => encodeURIComponent(value))
    else query.push(`${name}=${encodeURIComponent(value)}`)
  }
  const line = `${method} ${target}${query.length === 0 ? '' : `?${query.join('&')}`}`
  return call(server, line, body === undefined ? {} : { body })
}

it('takes whatever its description allows, and answers as it says', async () => {
  const server = await serve({ limits })
  const leases = new Leases()
  const seen = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(requests, async ({ path, parameters, body: made, pick }) => {
      const body = leases.mixInto(made, pick)
      const answer = await send(server, { path, parameters, body })
      expect(TAKEN, `${path} ${JSON.stringify(body)}: ${answer.text}`).toContain(answer.status)
      expect(undescribed(at(path), answer)).toEqual([])
      leases.note(answer)
      const outcome = `${path} ${answer.status}`
      seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
    }),
    { numRuns: 800 },
  )
  // A generator whose requests all fail alike would prove nothing.
  for (const { path } of asked) expect([...seen.keys()]).toContain(`${path} 200`)
  for (const path of ['acquire', 'renew', 'release']) expect([...seen.keys()]).toContain(`/v1/${path} 409`)
}, 120_000)

it('refuses whatever its description does not allow, as a mistake of the asker', async () => {
  const server = await serve({ limits })
  const wrong = fc
    .constantFrom(...writes)
    .chain((one) => fc.record({ path: fc.constant(one.path), body: nearlyAllowedBy(schemaOf(one), find) }))
    .filter(({ path, body }) => faults(schemaOf(at(path)), body, find).length > 0)
  await fc.assert(
    fc.asyncProperty(wrong, async ({ path, body }) => {
      const answer = await send(server, { path, parameters: [], body: JSON.stringify(body) })
      expect(REFUSED, `${path} ${JSON.stringify(body)}: ${answer.text}`).toContain(answer.status)
      expect(undescribed(at(path), answer)).toEqual([])
    }),
    { numRuns: 400 },
  )
  expect((await call(server, 'GET /v1/locks')).body).toEqual({ names: [] })
}, 120_000)

it.each([
  ['?limit=0', 400],
  ['?limit=1001', 400],
  ['?limit=1e2', 400],
  ['?limit=%205', 400],
  ['?limit=', 400],
  ['?cursor=', 400],
  ['?cursor=a%20b', 400],
  ['?cursor=____', 404],
  [`?prefix=${'x'.repeat(513)}`, 400],
  ['?prefx=a', 400],
])('refuses a list of %s', async (query, status) => {
  const server = await serve()
  expect((await call(server, `GET /v1/locks${query}`)).status).toBe(status)
})
