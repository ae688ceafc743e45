import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { capabilitiesFor } from '../../../src/stores/zookeeper/capabilities.ts'
import { czxidOf } from '../../../src/stores/zookeeper/index.ts'
import { Directories, isNext } from '../../../src/stores/zookeeper/directories.ts'
import { decodeName, encodeName, protection } from '../../../src/stores/zookeeper/names.ts'
import { readNote, writeNote } from '../../../src/stores/zookeeper/node-data.ts'
import {
  ALONE,
  compareNodes,
  isNextInLine,
  lineUp,
  mayStay,
  parseNode,
  positionOf,
} from '../../../src/stores/zookeeper/position.ts'
import type { Position, QueueNode } from '../../../src/stores/zookeeper/position.ts'
import { momentOf, NEVER } from '../../../src/stores/zookeeper/client/moment.ts'
import type { Clocks } from '../../../src/stores/zookeeper/client/moment.ts'
import { PROOF_MS, isFresh } from '../../../src/stores/zookeeper/proof.ts'
import { openZooKeeperStore } from '../../../src/stores/zookeeper/open.ts'
import { sessionTimeoutFor } from '../../../src/stores/zookeeper/zk-session.ts'
import { TOKENS_PER_NODE, tokenOf } from '../../../src/stores/zookeeper/token.ts'
import { checkPath } from '../../../src/stores/zookeeper/client/paths.ts'

/** As the server writes it: ten characters at least, with a minus among them after 2,147,483,647. */
const digits = (sequence: number): string =>
  sequence < 0 ? `-${String(-sequence).padStart(9, '0')}` : String(sequence).padStart(10, '0')
const nodeName = (kind: string, sequence: number): string =>
  `_c_123e4567-e89b-42d3-a456-426614174000-${kind}${digits(sequence)}`
const node = (kind: string, sequence: number): QueueNode => parseNode(nodeName(kind, sequence)) as QueueNode

const shuffled = <T>(values: readonly T[]): fc.Arbitrary<T[]> =>
  fc.shuffledSubarray([...values], { minLength: values.length })

describe('the queue of a directory', () => {
  it('reads the nodes of Curator and of those who do as it does, and no others', () => {
    expect(node('lock-', 7)).toMatchObject({ kind: 'lock', sequence: 7 })
    expect(node('__READ__', 7)).toMatchObject({ kind: 'read', sequence: 7 })
    expect(node('__WRIT__', 7)).toMatchObject({ kind: 'write', sequence: 7 })
    expect(parseNode('_c_0123456789abcdef0123456789abcdef-lock-0000000003')).toMatchObject({ sequence: 3 })
    expect(
      ['leases', 'locks', 'lock-', 'lock-12', 'a__lock__0000000001', 'lease-0000000001'].map(parseNode),
    ).toEqual(Array<null>(6).fill(null))
  })

  it('goes on in order when the counter begins again below zero', () => {
    const last = 2 ** 31 - 1
    const line = [
      node('lock-', last - 1),
      node('lock-', last),
      node('lock-', -(2 ** 31)),
      node('lock-', -(2 ** 31) + 1),
    ]
    expect([...line].reverse().sort(compareNodes)).toEqual(line)
  })

  it('knows every number that a server can give, below zero too', () => {
    fc.assert(
      fc.property(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), (sequence) => {
        expect(parseNode(nodeName('lock-', sequence))).toMatchObject({ kind: 'lock', sequence })
      }),
    )
    expect(parseNode('lock--999999999')).toMatchObject({ sequence: -999_999_999 })
    expect(parseNode('lock--000000001')).toMatchObject({ sequence: -1 })
  })

  it('lets only who found it empty stay in a directory whose numbers come to their end, and nobody at the end', () => {
    const last = 2 ** 31 - 1
    const beside = { ...ALONE, ahead: 1 }
    const stays = (sequence: number): boolean[] =>
      [ALONE, beside].map((place) => mayStay(node('__READ__', sequence), place))
    expect(stays(0)).toEqual([true, true])
    expect(stays(last - 2_000_000)).toEqual([true, true])
    expect(stays(last - 10)).toEqual([true, false])
    expect([last, -(2 ** 31), -1].map(stays)).toEqual(Array(3).fill([false, false]))
  })

  it('lets a lock in when nobody is before it, and otherwise has it wait for whoever is directly before it', () => {
    fc.assert(
      fc.property(
        fc
          .integer({ min: 1, max: 30 })
          .chain((size) =>
            fc.tuple(shuffled(Array.from({ length: size }, (_, i) => i)), fc.nat({ max: size - 1 })),
          ),
        ([order, own]) => {
          const children = order.map((sequence) => nodeName('lock-', sequence))
          const place = positionOf(children, node('lock-', own))
          expect(place).toMatchObject({
            behind: own === 0 ? null : node('lock-', own - 1),
            beyond: own < 2 ? null : node('lock-', own - 2),
            ahead: own,
            contended: own < order.length - 1,
            mismatch: null,
          })
        },
      ),
    )
  })

  it('may be known to come to a lock next, and then it does, whatever else happens', () => {
    const step = fc.constantFrom('comes', 'gives up', 'is next')
    fc.assert(
      fc.property(fc.nat({ max: 4 }), fc.array(step, { maxLength: 30 }), fc.nat(), (size, steps, pick) => {
        let line = Array.from({ length: size + 2 }, (_, sequence) => sequence)
        let next = line.length
        const own = line[pick % line.length] as number
        const look = (): Position =>
          positionOf(
            line.map((at) => nodeName('lock-', at)),
            node('lock-', own),
          ) as Position
        // A look at some moment, which is not repeated.
        const seen = look()
        for (const what of steps) {
          const others = line.filter((at) => at !== own)
          if (what === 'comes') line.push(next++)
          else line = line.filter((at) => at !== (what === 'is next' ? others[0] : others.at(-1)))
          const neighbour = seen.behind?.sequence
          if (neighbour === undefined || line.includes(neighbour)) continue
          expect(!isNextInLine(node('lock-', own), seen) || look().behind === null).toBe(true)
        }
      }),
    )
    const seen = { ...ALONE, ahead: 1, contended: true }
    expect(isNextInLine({ kind: 'lock' }, seen)).toBe(true)
    expect(isNextInLine({ kind: 'lock' }, { ...seen, ahead: 2 })).toBe(false)
    expect(isNextInLine({ kind: 'lock' }, { ...seen, contended: false })).toBe(false)
    // A reader may stand in a writer's place.
    for (const kind of ['read', 'write'] as const) expect(isNextInLine({ kind }, seen)).toBe(false)
  })

  it('lets readers in together up to the first writer, and has a reader wait for the last writer before it', () => {
    const kinds = fc.array(fc.constantFrom('__READ__', '__WRIT__'), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(
        kinds.chain((line) => fc.tuple(fc.constant(line), shuffled(line.map((_, i) => i)))),
        ([line, order]) => {
          const children = order.map((sequence) => nodeName(line[sequence] as string, sequence))
          const { held } = lineUp(children)
          line.forEach((kind, own) => {
            const before = line.slice(0, own)
            const writer = before.lastIndexOf('__WRIT__')
            const expected = kind === '__READ__' ? writer : own - 1
            const place = positionOf(children, node(kind, own))
            expect(place?.behind?.sequence ?? -1).toBe(expected)
            // Whoever needs not wait is a holder, and nobody else is.
            expect(place?.behind === null).toBe(own < held)
          })
        },
      ),
    )
  })

  it('keeps a writer waiting behind a reader that took the number of the writer before', () => {
    const children = [
      nodeName('__WRIT__', 3),
      nodeName('__READ__', 3),
      nodeName('__WRIT__', 4),
      nodeName('__READ__', 5),
    ]
    expect(positionOf(children, node('__WRIT__', 4))?.behind).toEqual(node('__READ__', 3))
    const gone = children.slice(1)
    expect(positionOf(gone, node('__WRIT__', 4))?.behind).toEqual(node('__READ__', 3))
    expect(lineUp(gone).held).toBe(1)
  })

  it('says that a node is gone, that another kind of lock came first, and that a semaphore lives there', () => {
    expect(positionOf([nodeName('lock-', 1)], node('lock-', 2))).toBeNull()
    expect(positionOf([nodeName('__READ__', 1), nodeName('lock-', 2)], node('lock-', 2))?.mismatch).toBe(
      2 ** 31 - 1,
    )
    expect(positionOf([nodeName('lock-', 1), nodeName('__READ__', 2)], node('__READ__', 2))?.mismatch).toBe(1)
    expect(positionOf([nodeName('lock-', 2), nodeName('__READ__', 3)], node('lock-', 2))?.mismatch).toBeNull()
    expect(positionOf([nodeName('lock-', 2), 'leases'], node('lock-', 2))?.semaphore).toBe(true)
  })
})

type Step = 'enter' | 'leave' | 'stranger comes' | 'stranger goes' | 'reaped' | 'other write' | 'election'

/** A directory at a server, as far as numbers go: the same that the real one does, and nothing else. */
class Model {
  zxid = 0x1_0000_0000
  counter = 0
  readonly strangers: number[] = []

  create(): number {
    this.zxid++
    return this.counter++
  }

  do(step: Step, ownThere: boolean): void {
    if (step === 'stranger comes') this.strangers.push(this.create())
    else if (step === 'election') this.zxid = (Math.floor(this.zxid / 2 ** 32) + 1) * 2 ** 32
    else this.zxid++
    if (step === 'stranger goes') this.strangers.shift()
    // One write removes it, another makes it anew.
    if (step === 'reaped' && !ownThere && this.strangers.length === 0) {
      this.zxid++
      this.counter = 0
    }
  }
}

describe('what the number of a node says', () => {
  const visit = (sequence: number, czxid: number): { sequence: number; czxid: bigint } => ({
    sequence,
    czxid: BigInt(czxid),
  })

  it('is that nobody stands before it, and only when that is so', () => {
    const often = <T>(weight: number, value: T): { weight: number; arbitrary: fc.Arbitrary<T> } => ({
      weight,
      arbitrary: fc.constant(value),
    })
    const step = fc.oneof(
      often<Step>(9, 'enter'),
      often<Step>(9, 'leave'),
      often<Step>(2, 'stranger comes'),
      often<Step>(2, 'stranger goes'),
      often<Step>(2, 'reaped'),
      often<Step>(2, 'other write'),
      often<Step>(1, 'election'),
    )
    const steps = fc.array(step, { minLength: 20, maxLength: 60, size: 'max' })
    let proven = 0
    const run = (walk: readonly Step[]): void => {
      const model = new Model()
      const directories = new Directories()
      let own: { node: ReturnType<typeof visit>; first: boolean } | null = null
      let wrong = 0
      for (const step of walk) {
        if (step === 'enter') {
          if (own !== null) continue
          const node = visit(model.create(), model.zxid)
          const first = model.strangers.length === 0
          const alone = directories.entered('/a', node)
          if (alone) proven++
          if (alone && !first) wrong++
          own = { node, first }
        } else if (step === 'leave') {
          if (own === null) continue
          model.zxid++
          if (own.first) directories.left('/a', own.node)
          own = null
        } else model.do(step, own !== null)
      }
      // Whether it is said whenever it could be is the next test's matter.
      expect(wrong).toBe(0)
    }
    fc.assert(fc.property(steps, run), { numRuns: 5000 })
    expect(proven).toBeGreaterThan(1000)
  })

  it('is believed again and again while nobody else comes, and not once after somebody did', () => {
    const directories = new Directories()
    const said: [boolean, boolean][] = []
    let zxid = 5
    const section = (sequence: number): void => {
      const quiet = directories.isQuiet('/a')
      const node = visit(sequence, (zxid += 2))
      said.push([quiet, directories.entered('/a', node)])
      directories.left('/a', node)
    }
    for (const sequence of [0, 1, 2, 3, 5, 6, 7]) section(sequence)
    expect(said).toEqual([
      [false, false],
      [false, true],
      [true, true],
      [true, true],
      [true, false],
      [false, true],
      [true, true],
    ])
  })

  it('is nothing when the directory could have been made anew meanwhile', () => {
    const last = visit(4, 100)
    // Removed, made, and five nodes in it: seven transactions.
    expect(isNext(last, visit(5, 107))).toBe(true)
    expect(isNext(last, visit(5, 108))).toBe(false)
    expect(isNext(last, visit(6, 102))).toBe(false)
    expect(isNext(visit(4, 2 ** 32 - 1), visit(5, 2 ** 32 + 1))).toBe(false)
    expect(isNext(last, visit(5, 99))).toBe(false)
    expect(isNext(visit(-2, 100), visit(-1, 101))).toBe(false)
    expect(isNext({ sequence: 4, czxid: 2n ** 60n }, { sequence: 5, czxid: 2n ** 60n + 2n })).toBe(false)
  })
})

describe('the proof that a session stands', () => {
  const at = (mono: number, wall: number): Clocks => ({ mono: () => mono, wall: () => wall })
  const proof = momentOf(at(1000, 50_000))

  it('is good for a moment, which the leases are shorter by', () => {
    expect(isFresh(proof, at(1000, 50_000))).toBe(true)
    expect(isFresh(proof, at(1000 + PROOF_MS, 50_000 + PROOF_MS))).toBe(true)
    expect(isFresh(proof, at(1001 + PROOF_MS, 50_000))).toBe(false)
    expect(isFresh(NEVER, at(1000, 50_000))).toBe(false)
    expect(capabilitiesFor(40_000).earlyExpiry).toBe(PROOF_MS)
  })

  it('is nothing after the machine slept, which only one of the clocks shows, or after the other was set', () => {
    expect(isFresh(proof, at(1005, 50_000 + 3_600_000))).toBe(false)
    expect(isFresh(proof, at(1005, 50_000 - 3_600_000))).toBe(false)
  })
})

describe('the name of a lock', () => {
  it('is one part of a path that ZooKeeper takes, and no other name has the same', () => {
    const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(name, name, (a, b) => {
        const part = encodeName(a)
        expect(part).not.toContain('/')
        expect(() => checkPath(`/${part}`)).not.toThrow()
        expect(decodeName(part)).toBe(a)
        expect(encodeName(b) === part).toBe(a === b)
      }),
    )
    for (const odd of ['.', '..', '/', '%', '🔑', 'a/b', '%2F']) expect(decodeName(encodeName(odd))).toBe(odd)
  })

  it('stays readable where it can, so that Java can use the same', () => {
    expect(encodeName('orders:train G101 – Zürich')).toBe('orders:train G101 – Zürich')
  })
})

describe('a node', () => {
  it('is protected in Curator’s way, by an id that the claim determines', () => {
    expect(protection('session.1')).toMatch(
      /^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}-$/,
    )
    expect(protection('session.1')).toBe(protection('session.1'))
    const ids = [
      'session.1',
      'session.2',
      'session.01',
      'session.10',
      'other.1',
      'session.',
      'session',
      '1',
      'session.x',
      `session.${'9'.repeat(13)}`,
    ]
    expect(new Set(ids.map(protection)).size).toBe(ids.length)
    for (const id of ids) expect(protection(id)).toHaveLength(protection('session.1').length)
  })

  it('carries a note about its claim; whatever else is in a node is somebody else’s', () => {
    const note = { id: 's.1', owner: 'host "a"', weight: 2, capacity: 3, ttl: 4 }
    expect(readNote(Buffer.from(writeNote(note)))).toEqual(note)
    for (const foreign of ['127.0.0.1', '', 'null', '[]', '{"id":1}', '__REVOKE__', '{']) {
      expect(readNote(Buffer.from(foreign))).toBeNull()
    }
  })

  it('gives tokens that lead back to its transaction, and do not reach into the next one’s', () => {
    const czxid = 0x0000_0012_0000_34a7n
    expect(czxidOf(tokenOf(czxid))).toBe(czxid)
    expect(czxidOf(tokenOf(czxid) + BigInt(TOKENS_PER_NODE - 1))).toBe(czxid)
    expect(tokenOf(czxid) + BigInt(TOKENS_PER_NODE)).toBe(tokenOf(czxid + 1n))
    expect(tokenOf(0x7fff_ffff_ffffn)).toBeLessThan(2n ** 63n)
  })
})

describe('a session', () => {
  // The leader may not know yet of the last half tick, nor of the last ping.
  it.each([1, 100, 600, 1000, 2600, 2700, 4000, 26_000])(
    'outlives a ttl of %d ms by what a follower may keep to itself',
    (ttl) => {
      const timeout = sessionTimeoutFor(ttl)
      expect(timeout - timeout / 12 - 1000).toBeGreaterThanOrEqual(ttl)
    },
  )
})

describe('a URL', () => {
  it.each([
    'zookeeper://',
    'zookeeper:///x',
    'redis://h',
    'zookeeper://h:1?x=1',
    'zookeeper://h?acl=all',
    'zookeeper://h?root=x',
    'zookeeper://h?maxSessionTimeout=1s',
    'zookeeper://user:secret@h:99999',
    'zookeeper://h?auth=secret',
    'zookeeper://us@er:secret@h:1',
    'zookeeper://user:sec/secret@h:1',
    'zookeeper://user:12/secret@h:1',
    'zookeeper://user:secret%zz@h:1',
    'zookeeper://h:1/%zz',
    'zookeeper://h:1?auth=digest:user:se&secret',
  ])('that is wrong is refused without showing it: %s', async (url) => {
    const failure = await openZooKeeperStore(url).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(String(failure)).not.toContain('secret')
  })
})
