import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

import fc from 'fast-check'
import { expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import { holdfastStore } from '../../../src/stores/holdfast/index.ts'
import { LineCutter } from '../../../src/stores/holdfast/lines.ts'
import { isPlausible } from '../../../src/stores/holdfast/plausible.ts'
import { assumedCapabilities } from '../../../src/stores/holdfast/capabilities.ts'
import { afterwards } from '../../server/helpers.ts'

const AGREED = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: holdfast.1\r\n\r\n'
const HELLO = `${JSON.stringify([0, { kind: 'hello', store: 'memory', capabilities: assumedCapabilities }])}\n`

/** A server that answers the upgrade with `first` and every line after that with what `reply` makes of its number. */
async function scripted(first: string, reply: (number: number) => string): Promise<string> {
  const server = createServer((socket) => {
    let upgraded = false
    socket.on('error', () => undefined)
    socket.on('data', (bytes: Buffer) => {
      let text = bytes.toString()
      if (!upgraded) {
        if (!text.includes('\r\n\r\n')) return
        upgraded = true
        socket.write(first)
        text = text.slice(text.indexOf('\r\n\r\n') + 4)
      }
      for (const line of text.split('\n')) {
        const number = Number(/^\[(\d+)/.exec(line)?.[1])
        if (number > 0) socket.write(reply(number))
      }
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  afterwards(() => server.close())
  return `holdfast://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const claim = { name: 'a', weight: 1, capacity: 1, ttl: 1000, patience: 1000, tokens: 1, owner: 'o' } as const

/** Asks everything once. Nothing may throw; the kinds of the answers come back. */
async function askAll(url: string): Promise<readonly string[]> {
  const store = holdfastStore(url)
  afterwards(() => store.close())
  const held = { name: 'a', id: 's.1' }
  const answers = await Promise.all([
    store.claim({ ...claim, id: 's.1', whenBusy: 'queue' }, 300),
    store.renew([{ ...held, ttl: 1000, patience: 1000, tokens: 1 }], 300),
    store.release(held, undefined, 300),
    store.release(held, { ...claim, id: 's.2', whenBusy: 'queue' }, 300),
    store.withdraw(held, 300),
    store.downgrade?.(held, 300),
    store.watch('s', () => undefined, 300),
    store.inspect('a', 300),
    store.list({}, 300),
  ])
  await store.close()
  return answers.flat().map((answer) => {
    const one = answer !== undefined && 'released' in answer ? answer.released : answer
    return one !== undefined && 'kind' in one ? one.kind : 'other'
  })
}

const REPLIES: readonly unknown[] = [
  null,
  0,
  'held',
  [],
  {},
  { kind: 'held' },
  { kind: 'held', token: 'x', count: 1, contended: false },
  { kind: 'held', token: '-1', count: 1, contended: false },
  { kind: 'held', token: 12, count: 1, contended: false },
  { kind: 'held', token: '12', count: 0, contended: false },
  { kind: 'held', token: '12', count: 1e300, contended: false },
  { kind: 'renewed' },
  { kind: 'mismatch', capacity: 'many' },
  { kind: '__proto__' },
  { released: null },
  { released: { kind: 'held' }, next: [] },
  [null],
  [{ kind: 'held', token: {} }],
  { names: [1] },
  { name: 'a', capacity: 1, holders: [null], waiters: [] },
  { name: 'a', capacity: 1, holders: [{ id: 1 }], waiters: 'none' },
  {
    name: 'a',
    capacity: 1,
    holders: [{ id: 'i', owner: 'o', weight: 1, expiresIn: 1, token: 'x' }],
    waiters: [],
  },
]

it.each(REPLIES.map((reply) => [JSON.stringify(reply), reply]))(
  'takes %s, where it is no answer, for unknown',
  async (_, reply) => {
    const url = await scripted(AGREED + HELLO, (number) => `${JSON.stringify([number, reply])}\n`)
    expect(new Set(await askAll(url))).toEqual(new Set(['unknown']))
  },
)

it.each([
  ['no JSON', 'hello\n'],
  ['no list', '{}\n'],
  ['null', 'null\n'],
  ['an empty list', '[]\n'],
  ['an event of nothing', '[0,null]\n'],
  ['an event before the hello', '[0,{"session":"s","event":{"kind":"gap"}}]\n'],
  ['a hello without capabilities', '[0,{"kind":"hello","store":"x"}]\n'],
  ['a hello with strange ones', '[0,{"kind":"hello","store":"x","capabilities":{"maxTtl":"long"}}]\n'],
  ['an answer before the hello', '[1,{"kind":"done"}]\n'],
])('ends a conversation that begins with %s', async (_, first) => {
  const url = await scripted(AGREED + first, (number) => `[${number},{"kind":"queued"}]\n`)
  expect(new Set(await askAll(url))).toEqual(new Set(['unknown']))
})

it.each([
  [
    'another protocol',
    'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n',
  ],
  ['none', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ['a page without an end', `HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(100_000)}`],
  ['null for a refusal', 'HTTP/1.1 403 Forbidden\r\ncontent-length: 4\r\n\r\nnull'],
  [
    'words for a terminal',
    'HTTP/1.1 403 No\r\nconnection: close\r\n\r\n{"error":{"message":"\\u001b[2Jgone"}}',
  ],
  ['no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n'],
])('is not fooled by a server that agrees to %s', async (_, first) => {
  const url = await scripted(first + HELLO, (number) => `[${number},{"kind":"queued"}]\n`)
  const store = holdfastStore(url)
  afterwards(() => store.close())
  const answer = await store.claim({ ...claim, id: 's.1', whenBusy: 'try' }, 1000)
  expect(answer.kind).toBe('unknown')
  // eslint-disable-next-line no-control-regex -- that is what must not be in there
  expect(String((answer as { cause: Error }).cause.message)).not.toMatch(/[\u0000-\u001f]/)
})

it('never throws, whatever a server says unasked', async () => {
  const events = fc.oneof(
    fc.json(),
    fc
      .record({
        session: fc.constantFrom('s', 1, null),
        event: fc.record(
          {
            kind: fc.constantFrom('granted', 'revoked', 'contended', 'freed', 'gap', 'x'),
            name: fc.constantFrom('a', null, 7),
            id: fc.constantFrom('s.1', {}, undefined),
            token: fc.constantFrom('1', 'x', 1, null),
            count: fc.constantFrom(1, 'one'),
          },
          { requiredKeys: [] },
        ),
      })
      .map((event) => JSON.stringify(event)),
  )
  const lines = fc.sample(events, { numRuns: 2000, seed: 7 }).map((event) => `[0,${event}]\n`)
  const url = await scripted(AGREED + HELLO + lines.join(''), (number) => `[${number},{"kind":"done"}]\n`)
  const store = holdfastStore(url)
  afterwards(() => store.close())
  const told: unknown[] = []
  expect(await store.watch('s', (event) => void told.push(event), 2000)).toMatchObject({ kind: 'watching' })
  await store.list({}, 1000)
  for (const event of told) expect(event).toHaveProperty('kind')
})

it('leaves the process of who uses it alone, and its locks not taken', async () => {
  const url = await scripted(AGREED + HELLO, (number) => `[${number},{"kind":"held","token":"x"}]\n`)
  const store = holdfastStore(url)
  const holdfast = new Holdfast(store, { ttl: 500 })
  afterwards(async () => {
    await holdfast.close({ timeout: 500 })
    await store.close()
  })
  await expect(holdfast.mutex('a').acquire({ wait: 300 })).rejects.toThrow('"a"')
})

const MB = 1024 * 1024
const brackets = (count: number): string => '['.repeat(count) + ']'.repeat(count)

it.each([
  ['brackets in brackets, unasked', `[0,${brackets(2 * MB)}]\n`],
  ['a long text, unasked', `[0,"${'a'.repeat(MB)}"]\n`],
  ['a number that nobody asked with', `[99999,"${'a'.repeat(MB)}"]\n`],
])('takes %s for the end, without parsing it', async (_, line) => {
  const url = await scripted(AGREED + HELLO, (number) =>
    number === 1 ? line : `[${number},{"kind":"busy"}]\n`,
  )
  const store = holdfastStore(url)
  afterwards(() => store.close())
  let last = performance.now()
  let stall = 0
  const looker = setInterval(() => {
    stall = Math.max(stall, performance.now() - last - 10)
    last = performance.now()
  }, 10)
  afterwards(() => clearInterval(looker))
  const answer = await store.claim({ ...claim, id: 's.1', whenBusy: 'try' }, 5000)
  expect(answer).toMatchObject({
    kind: 'unknown',
    cause: { message: expect.stringContaining('ended') as string },
  })
  // Parsed, the first one takes seconds.
  expect(stall).toBeLessThan(1000)
})

it('reads long answers to those who asked for names or holders, and leaves late ones out', async () => {
  const long = Array.from({ length: 1000 }, (_, index) => `${index}"\\`.padEnd(400, 'x'))
  const url = await scripted(AGREED + HELLO, (number) => `${JSON.stringify([number, { names: long }])}\n`)
  const store = holdfastStore(url)
  afterwards(() => store.close())
  expect(await store.list({}, 5000)).toEqual({ names: long })
  // Nobody waits for it any more when it comes.
  const late = await scripted(AGREED + HELLO, (number) =>
    number === 1
      ? ''
      : `${JSON.stringify([1, { names: long }])}\n${JSON.stringify([number, { kind: 'busy' }])}\n`,
  )
  const other = holdfastStore(late)
  afterwards(() => other.close())
  expect(await other.list({}, 100)).toMatchObject({ kind: 'unknown' })
  expect(await other.claim({ ...claim, id: 's.1', whenBusy: 'try' }, 2000)).toMatchObject({ kind: 'busy' })
})

it('finds every answer of ours plausible, whatever its texts are, and nothing that is deep or endless', () => {
  const text = fc.string({ unit: fc.constantFrom('"', '\\', '[', '{', ',', 'a', '\u{1f512}'), maxLength: 40 })
  const holder = fc.record({ id: text, owner: text, weight: fc.nat(), expiresIn: fc.nat(), token: text })
  fc.assert(
    fc.property(fc.array(holder, { maxLength: 20 }), text, (holders, name) => {
      const line = JSON.stringify([7, { name, capacity: 1, holders, waiters: holders }])
      return isPlausible(line, 'inspect')
    }),
    { numRuns: 300 },
  )
  expect(isPlausible(`[7,${brackets(10)}]`, 'inspect')).toBe(false)
  expect(isPlausible(`[7,{"names":[${'1,'.repeat(300_000)}1]}]`, 'list')).toBe(false)
  expect(isPlausible(`[7,"${'a'.repeat(20 * MB)}"]`, 'inspect')).toBe(false)
})

it('cuts lines the same way, however the bytes come', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom('a', '\u00e9', '\u{1f512}', '\n'), maxLength: 12 }), {
        maxLength: 8,
      }),
      fc.array(fc.nat({ max: 6 }), { minLength: 1, maxLength: 30 }),
      (texts, sizes) => {
        const bytes = Buffer.from(texts.join(''))
        const cutter = new LineCutter(1000)
        const lines: string[] = []
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const size = (sizes[turn % sizes.length] ?? 0) + 1
          lines.push(...(cutter.push(bytes.subarray(at, at + size)) ?? ['refused']))
          at += size
        }
        expect(lines).toEqual(texts.join('').split('\n').slice(0, -1))
      },
    ),
    { numRuns: 300 },
  )
  const short = new LineCutter(10)
  expect(short.push(Buffer.from('12345'))).toEqual([])
  expect(short.push(Buffer.from('123456'))).toBeNull()
})

it('calls a server that agrees and hangs up before its hello more and more seldom', async () => {
  let calls = 0
  let hostile = false
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      if (hostile) {
        calls++
        return void socket.end(AGREED)
      }
      socket.write(AGREED + HELLO)
      socket.on('data', (bytes: Buffer) => {
        const number = /^\[(\d+)/.exec(bytes.toString())?.[1]
        hostile = true
        socket.end(`[${number},{"kind":"done"}]\n`)
      })
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  afterwards(() => server.close())
  const store = holdfastStore(`holdfast://127.0.0.1:${(server.address() as AddressInfo).port}`)
  afterwards(() => store.close())
  expect(await store.watch('s', () => undefined, 2000)).toMatchObject({ kind: 'watching' })
  await new Promise((resolve) => void setTimeout(resolve, 3000))
  expect(calls).toBeGreaterThan(0)
  // The pauses double, up to two seconds: seven calls, and some more if this was late itself. It was one every 40 ms.
  expect(calls).toBeLessThan(15)
})
