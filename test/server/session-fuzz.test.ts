import fc from 'fast-check'
import { connect } from 'node:net'

import { expect, it } from 'vitest'

import type { RunningServer } from '../../src/server/index.ts'
import { upgrade } from './attacks/session.ts'
import { call, eventually, portOf, raw, serve } from './helpers.ts'

/** Ten thousand lines that no store of ours would send. */

const SESSIONS = 50
const LINES = 200

const OPERATIONS: readonly unknown[] = [
  'claim release withdraw renew downgrade watch unwatch inspect list ping hello __proto__ constructor'.split(
    ' ',
  ),
  Array.from({ length: 8 }, () => 'claim'),
  ['', null, 7, {}, { toString: 1 }, { valueOf: null, toString: {} }] as unknown[],
].flat()

const names = fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.string({ unit: 'binary', maxLength: 30 }))
const ids = fc.constantFrom('s', '.', 's.', '.1', 't.1', 'x'.repeat(129))
const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(0, -1, 1, 1.5, 2 ** 31, 2 ** 53, 1e308, '10', null, [], {}, 'a'),
)
const sometimes = <T>(good: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 25, arbitrary: good as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: anything })

/** Half right: what is wrong everywhere is refused at the first field. */
const claim = fc.nat({ max: 40 }).chain((number) =>
  fc.record(
    {
      name: sometimes(fc.constant('abc'[number % 3])),
      id: sometimes(fc.oneof({ weight: 9, arbitrary: fc.constant(`s.${number}`) }, ids)),
      weight: sometimes(fc.constant(1)),
      capacity: sometimes(fc.constantFrom(1, 1, 1, 2, 2 ** 31 - 1)),
      ttl: sometimes(fc.constantFrom(100, 1000)),
      patience: sometimes(fc.constantFrom(100, 1000)),
      tokens: sometimes(fc.constantFrom(0, 1, 64)),
      whenBusy: sometimes(fc.constantFrom('queue', 'try')),
      owner: sometimes(fc.constantFrom('me', 'you')),
      next: anything,
    },
    { requiredKeys: ['name', 'id', 'weight', 'capacity', 'ttl', 'patience', 'tokens', 'whenBusy'] },
  ),
)
const payload = fc.oneof({ weight: 5, arbitrary: claim }, names, fc.array(claim, { maxLength: 3 }), anything)
const line = fc.tuple(fc.constantFrom(...OPERATIONS), payload, anything)

/** Sends all of them in one packet, and waits until each has an answer. */
function converse(server: RunningServer, lines: readonly unknown[]): Promise<Map<number, unknown>> {
  const answers = new Map<number, unknown>()
  return new Promise((resolve, reject) => {
    const socket = connect(portOf(server), '127.0.0.1')
    let rest = ''
    socket.setEncoding('utf8')
    socket.on('error', reject)
    socket.on('close', () => resolve(answers))
    socket.on('data', (text: string) => {
      const parts = (rest + text).split('\n')
      rest = parts.pop() ?? ''
      for (const part of parts) {
        if (!part.startsWith('[')) continue
        const [number, answer] = JSON.parse(part) as [number, unknown]
        if (number > 0) answers.set(number, answer)
      }
      if (answers.size === lines.length) socket.destroy()
    })
    const numbered = lines.map((one, index) => `${JSON.stringify([index + 1, ...(one as unknown[])])}\n`)
    socket.write(upgrade() + numbered.join(''))
  })
}

it('answers each of ten thousand strange lines once, and goes on', async () => {
  const faults: string[] = []
  const server = await serve({
    log: ({ event, message }) => void (event === 'internal' && faults.push(message)),
  })
  const kinds = new Map<string, number>()
  let answered = 0
  await fc.assert(
    fc.asyncProperty(fc.array(line, { minLength: LINES, maxLength: LINES }), async (lines) => {
      const answers = await converse(server, lines)
      expect(answers.size).toBe(LINES)
      answered += answers.size
      for (const answer of answers.values()) {
        const { kind, released } = answer as { kind?: string; released?: { kind: string } }
        const told = kind ?? released?.kind ?? 'list'
        kinds.set(told, (kinds.get(told) ?? 0) + 1)
      }
    }),
    { numRuns: SESSIONS, endOnFailure: true },
  )
  expect(answered).toBe(SESSIONS * LINES)
  expect(faults).toEqual([])
  // Refusals alone would prove little.
  for (const kind of ['held', 'queued', 'busy', 'released', 'not-held', 'unknown', 'done'])
    expect([...kinds.keys()]).toContain(kind)
  await eventually(
    'nothing is left',
    async () => (await call(server, 'GET /v1/locks')).text === '{"names":[]}\n',
  )
}, 120_000)

it('ends a session for a line that is none, whatever bytes it has, and serves the others', async () => {
  const server = await serve()
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (bytes) => {
      await new Promise<void>((resolve, reject) => {
        const socket = connect(portOf(server), '127.0.0.1')
        socket.on('error', reject)
        socket.on('close', () => resolve())
        socket.resume()
        socket.write(upgrade())
        socket.write(Buffer.from([...bytes, 10]))
        socket.write('no line\n')
      })
    }),
    { numRuns: 300 },
  )
  expect((await call(server, 'GET /v1/health')).status).toBe(200)
}, 120_000)

it('answers lists in lists, whatever they stand for', async () => {
  const server = await serve()
  // Whoever goes down into them needs a stack for each.
  const deep = '['.repeat(15_000) + ']'.repeat(15_000)
  const lines = ['"claim"', '"renew"', '"release"', '"watch"', '"inspect"', '"list"', deep].flatMap((what) =>
    [deep, `[${deep}]`, `{"name":${deep}}`, `{"name":"a","id":${deep}}`].map((payload) => [what, payload]),
  )
  const asked = lines.map(([what, payload], index) => `[${index + 1},${what},${payload},1000]\n`)
  const got = await raw(server, upgrade() + asked.join(''), `[${lines.length},`)
  expect(got.match(/^\[[1-9]\d*,/gm)).toHaveLength(lines.length)
}, 20_000)
