import { describe, expect, it } from 'vitest'

import { flagOf, isError, ProtocolError, ReplyReader } from '../../../src/stores/memcached/protocol.ts'
import type { Reply } from '../../../src/stores/memcached/protocol.ts'

function readAll(reader: ReplyReader): Reply[] {
  const replies: Reply[] = []
  for (let reply = reader.next(); reply !== undefined; reply = reader.next()) replies.push(reply)
  return replies
}

const stream = 'HD c7 t30 O1\r\nVA 5 c8\r\na\r\nb\0\r\nEN\r\nSERVER_ERROR out of memory\r\nVA 0 t1\r\n\r\n'

describe('replies of memcached', () => {
  it('are the same however the stream is cut into packets', () => {
    const whole = new ReplyReader()
    whole.feed(stream)
    const expected = readAll(whole)
    expect(expected.map(({ code, value }) => [code, value])).toEqual([
      ['HD', undefined],
      ['VA', 'a\r\nb\0'],
      ['EN', undefined],
      ['SERVER_ERROR', undefined],
      ['VA', ''],
    ])
    for (let size = 1; size < stream.length; size += 1) {
      const reader = new ReplyReader()
      const replies: Reply[] = []
      for (let at = 0; at < stream.length; at += size) {
        reader.feed(stream.slice(at, at + size))
        replies.push(...readAll(reader))
      }
      expect(replies).toEqual(expected)
    }
  })

  it('have flags that are found by their letter, and only there', () => {
    const reply: Reply = { code: 'HD', line: 'HD c7 t30 O12', value: undefined }
    expect(['c', 't', 'O', 'v'].map((letter) => flagOf(reply, letter))).toEqual(['7', '30', '12', undefined])
  })

  it('are errors when they say so', () => {
    for (const code of ['ERROR', 'CLIENT_ERROR', 'SERVER_ERROR']) {
      expect(isError({ code, line: code, value: undefined })).toBe(true)
    }
    for (const code of ['EN', 'EX', 'END'])
      expect(isError({ code, line: code, value: undefined })).toBe(false)
  })

  it.each([
    ['another protocol', 'HTTP/1.1 400 Bad Request\r\n'],
    ['a line that does not end', 'x'.repeat(5000)],
    ['a known line that does not end', `HD ${'x'.repeat(5000)}\r\n`],
    ['a value larger than any of ours', 'VA 1000000 c1\r\n'],
    ['a value without a size', 'VA x c1\r\n'],
    ['a value with a negative size', 'VA -5 c1\r\n'],
    ['a value that is longer than announced', 'VA 2 c1\r\nabc\r\n'],
    ['an empty line', '\r\n'],
  ])('are refused when they are %s', (_what, text) => {
    const reader = new ReplyReader()
    reader.feed(text)
    expect(() => reader.next()).toThrow(ProtocolError)
  })
})
