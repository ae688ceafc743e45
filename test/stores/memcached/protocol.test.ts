import { describe, expect, it } from 'vitest'

import { isError, ProtocolError, ReplyReader } from '../../../src/stores/memcached/protocol.ts'
import type { Reply } from '../../../src/stores/memcached/protocol.ts'

function readAll(reader: ReplyReader): Reply[] {
  const replies: Reply[] = []
  for (let reply = reader.next(); reply !== undefined; reply = reader.next()) replies.push(reply)
  return replies
}

function only(text: string): Reply {
  const reader = new ReplyReader()
  reader.feed(text)
  const [reply, ...more] = readAll(reader)
  if (reply === undefined || more.length > 0) throw new Error(`not one reply: ${text}`)
  return reply
}

/** All that a reply says, wherever it lies in what arrived. */
const said = ({ code, line, value }: Reply): unknown => [code, line, value]

const stream = 'HD c7 t30 O1\r\nVA 5 c8\r\na\r\nb\0\r\nEN\r\nSERVER_ERROR out of memory\r\nVA 0 t1\r\n\r\n'

describe('replies of memcached', () => {
  it('are the same however the stream is cut into packets', () => {
    const whole = new ReplyReader()
    whole.feed(stream)
    const expected = readAll(whole)
    expect(expected.map(said)).toEqual([
      ['HD', 'HD c7 t30 O1', undefined],
      ['VA', 'VA 5 c8', 'a\r\nb\0'],
      ['EN', 'EN', undefined],
      ['SERVER_ERROR', 'SERVER_ERROR out of memory', undefined],
      ['VA', 'VA 0 t1', ''],
    ])
    for (let size = 1; size < stream.length; size += 1) {
      const reader = new ReplyReader()
      const replies: Reply[] = []
      for (let at = 0; at < stream.length; at += size) {
        reader.feed(stream.slice(at, at + size))
        replies.push(...readAll(reader))
      }
      expect(replies.map(said)).toEqual(expected.map(said))
    }
  })

  it('have flags that are found by their letter, and only there', () => {
    const reply = only('HD c7 t30 k O12\r\n')
    expect(['c', 't', 'k', 'O', 'v'].map((letter) => reply.flag(letter))).toEqual([
      '7',
      '30',
      '',
      '12',
      undefined,
    ])
    expect(['c', 't', 'k', 'O', 'v'].map((letter) => reply.flagNumber(letter))).toEqual([7, 30, NaN, 12, NaN])
    // Not in the next line, and not in the value.
    const reader = new ReplyReader()
    reader.feed('VA 5 c1\r\n t9 x\r\nHD t3\r\n')
    expect(readAll(reader).map((one) => one.flag('t'))).toEqual([undefined, '3'])
  })

  it.each([
    ['VA 16\r\n1763000000000001\r\n', 1_763_000_000_000_001],
    ['VA 16 c7\r\n9007199254740991\r\n', Number.MAX_SAFE_INTEGER],
    ['VA 16\r\n9007199254740993\r\n', NaN],
    ['VA 1\r\n0\r\n', 0],
    ['VA 2\r\n-1\r\n', NaN],
    ['VA 2\r\n1 \r\n', NaN],
    ['VA 0\r\n\r\n', NaN],
    ['HD\r\n', NaN],
  ])('have a number in %j only where it can be told exactly', (text, number) => {
    expect(only(text).number).toBe(number)
  })

  it('are errors when they say so', () => {
    for (const code of ['ERROR', 'CLIENT_ERROR', 'SERVER_ERROR']) {
      expect(isError(only(`${code} of some kind\r\n`))).toBe(true)
    }
    for (const code of ['EN', 'EX', 'END']) expect(isError(only(`${code}\r\n`))).toBe(false)
  })

  it.each([
    ['another protocol', 'HTTP/1.1 400 Bad Request\r\n'],
    ['a line that does not end', 'x'.repeat(5000)],
    ['a known line that does not end', `HD ${'x'.repeat(5000)}\r\n`],
    ['a value larger than any of ours', 'VA 1000000 c1\r\n'],
    ['a value without a size', 'VA x c1\r\n'],
    ['a value with a negative size', 'VA -5 c1\r\n'],
    ['a value that is longer than announced', 'VA 2 c1\r\nabc\r\n'],
    ['a value with a size that goes on', 'VA 2x c1\r\nab\r\n'],
    ['an empty line', '\r\n'],
    ['a line that ends otherwise', 'HD\nHD\r\n'],
    ['a short word of another protocol', 'OK\r\n'],
  ])('are refused when they are %s', (_what, text) => {
    const reader = new ReplyReader()
    reader.feed(text)
    expect(() => reader.next()).toThrow(ProtocolError)
  })
})
