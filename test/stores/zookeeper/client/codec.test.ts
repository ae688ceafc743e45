import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { hasCode } from '../../../../src/stores/zookeeper/client/errors.ts'
import { FrameCutter } from '../../../../src/stores/zookeeper/client/frames.ts'
import { JuteReader, JuteWriter } from '../../../../src/stores/zookeeper/client/jute.ts'
import { multi } from '../../../../src/stores/zookeeper/client/multi.ts'
import * as ops from '../../../../src/stores/zookeeper/client/operations.ts'
import type { Operation } from '../../../../src/stores/zookeeper/client/operations.ts'
import { OPEN_ACL } from '../../../../src/stores/zookeeper/client/records.ts'
import { readEvent } from '../../../../src/stores/zookeeper/client/watches.ts'

const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const value = fc.oneof(
  fc.record({ kind: fc.constant('int' as const), value: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }) }),
  fc.record({ kind: fc.constant('long' as const), value: long }),
  fc.record({ kind: fc.constant('bool' as const), value: fc.boolean() }),
  fc.record({
    kind: fc.constant('string' as const),
    value: fc.string({ unit: 'grapheme', maxLength: 2000 }),
  }),
  fc.record({ kind: fc.constant('bytes' as const), value: fc.uint8Array({ maxLength: 50_000 }) }),
  fc.record({ kind: fc.constant('strings' as const), value: fc.array(fc.string({ unit: 'grapheme' })) }),
)
type Value = typeof value extends fc.Arbitrary<infer T> ? T : never

function write(writer: JuteWriter, { kind, value: what }: Value): void {
  if (kind === 'int') writer.int(what)
  else if (kind === 'long') writer.long(what)
  else if (kind === 'bool') writer.bool(what)
  else if (kind === 'string') writer.string(what)
  else if (kind === 'bytes') writer.bytes(what)
  else writer.strings(what)
}

function read(reader: JuteReader, { kind }: Value): unknown {
  return kind === 'bytes' ? new Uint8Array(reader.bytes()) : reader[kind]()
}

function framesOf(chunks: readonly Buffer[], most = 1_000_000): Buffer[] {
  const cutter = new FrameCutter(most)
  const frames: Buffer[] = []
  for (const chunk of chunks)
    cutter.push(chunk, (buffer, start, end) => frames.push(Buffer.from(buffer.subarray(start, end))))
  return frames
}

/** Cuts bytes at the given places, given as parts of the whole. */
function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...at.map((part) => Math.floor(part * bytes.length)), bytes.length].sort((a, b) => a - b)
  return places.map((end, index) => bytes.subarray(places[index - 1] ?? 0, end))
}

describe('the encoding', () => {
  it('gives back what was written, in any mix and size, however the bytes arrive', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(value, { maxLength: 8 }), { maxLength: 12 }),
        fc.array(fc.float({ min: 0, max: 1, noNaN: true })),
        fc.integer({ min: 1, max: 5 }),
        (messages, cuts, takeEvery) => {
          const writer = new JuteWriter()
          const sent: Buffer[] = []
          messages.forEach((message, index) => {
            writer.begin()
            for (const one of message) write(writer, one)
            writer.end()
            if (index % takeEvery === 0) sent.push(writer.take())
          })
          sent.push(writer.take())
          const frames = framesOf(cut(Buffer.concat(sent), cuts))
          expect(frames).toHaveLength(messages.length)
          frames.forEach((frame, index) => {
            const reader = new JuteReader(frame)
            const message = messages[index] as Value[]
            expect(message.map((one) => read(reader, one))).toEqual(message.map(({ value: what }) => what))
            expect(reader.remaining).toBe(0)
          })
        },
      ),
      { numRuns: 300 },
    )
  })

  it('forgets a message that was begun and undone', () => {
    const writer = new JuteWriter()
    writer.begin()
    writer.int(1)
    writer.end()
    writer.begin()
    writer.bytes(Buffer.alloc(100_000))
    writer.undo()
    writer.begin()
    writer.int(2)
    writer.end()
    expect(framesOf([writer.take()]).map((frame) => frame.readInt32BE(0))).toEqual([1, 2])
  })

  it('refuses a frame that is too large or has a negative length, before it is there', () => {
    const header = (length: number): Buffer => {
      const bytes = Buffer.alloc(4)
      bytes.writeInt32BE(length)
      return bytes
    }
    expect(() => framesOf([header(1001)], 1000)).toThrow('a frame of 1001 bytes')
    expect(() => framesOf([header(-1)], 1000)).toThrow('a frame of -1 bytes')
    expect(framesOf([header(1000)], 1000)).toEqual([])
  })
})

const readers: readonly Operation<unknown>[] = [
  ops.create({ path: '/a', data: Buffer.from('x'), acl: OPEN_ACL, mode: 'ephemeral', ttl: 0 }),
  ops.exists('/a', false),
  ops.getData('/a', false),
  ops.getChildren('/a', false),
  ops.getAcl('/a'),
  ops.getEphemerals('/'),
  ops.whoAmI(),
  multi([
    ops.create({ path: '/a', data: Buffer.alloc(0), acl: OPEN_ACL, mode: 'persistent', ttl: 0 }),
    ops.setData('/a', Buffer.alloc(0), 1),
    ops.check('/a', 1),
  ]),
]

describe('the decoder', () => {
  it('makes a value of any bytes or calls them malformed, and never reads on or hangs', () => {
    const decode = (operation: Operation<unknown>, bytes: Uint8Array): void => {
      const reader = new JuteReader(Buffer.from(bytes))
      try {
        operation.read(reader, 1n)
      } catch (error) {
        if (!hasCode(error, 'PROTOCOL')) throw error
      }
      expect(reader.remaining).toBeGreaterThanOrEqual(0)
    }
    fc.assert(fc.property(fc.constantFrom(...readers), fc.uint8Array({ maxLength: 400 }), decode), {
      numRuns: 3000,
    })
    // Lengths near the limits are rare in random bytes.
    const wild = fc.constantFrom(-1, -2, 0, 1, 2, 7, 255, 2 ** 31 - 1, -(2 ** 31), 10_000_000)
    fc.assert(
      fc.property(fc.constantFrom(...readers), fc.array(wild, { maxLength: 60 }), (operation, numbers) => {
        const bytes = Buffer.alloc(numbers.length * 4)
        numbers.forEach((number, index) => bytes.writeInt32BE(number, index * 4))
        decode(operation, bytes)
      }),
      { numRuns: 3000 },
    )
  })

  it('takes an event of an unknown type for none', () => {
    const writer = new JuteWriter()
    writer.begin()
    writer.int(77)
    writer.int(3)
    writer.string('/a')
    writer.end()
    expect(readEvent(new JuteReader(writer.take().subarray(4)))).toBeUndefined()
  })
})
