import { expect, it } from 'vitest'

import type { Store } from '../../../src/core/contract.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import { NestedLease } from '../../../src/locks/nested-lease.ts'
import { unwatched } from '../../../src/locks/leak-watch.ts'
import type { ClaimLease, Lease } from '../../../src/runtime/lease.ts'

/** One way to guard a transaction on one database. */
export interface Guarding {
  readonly store: Store
  /** Runs the step in a guarded transaction that writes the line; the step may wait or not, as the database allows. */
  readonly guarded: (lease: Lease, line: string, inside: () => unknown) => Promise<void>
  readonly lines: () => Promise<readonly string[]>
}

interface Scene {
  readonly holdfast: Holdfast
  readonly other: Holdfast
  readonly name: string
  readonly lease: Lease
  readonly guarding: Guarding
}

const MAX_HOLD = 40

const KINDS = {
  mutex: ({ holdfast, name }: Where, maxHold?: number) => holdfast.mutex(name).acquire(limit(maxHold)),
  writer: ({ holdfast, name }: Where, maxHold?: number) =>
    holdfast.readWriteLock(name).write.acquire(limit(maxHold)),
  reader: ({ holdfast, name }: Where, maxHold?: number) =>
    holdfast.readWriteLock(name).read.acquire(limit(maxHold)),
  permit: ({ holdfast, name }: Where, maxHold?: number) =>
    holdfast.semaphore(name, 50).acquire(limit(maxHold)),
  permits: ({ holdfast, name }: Where, maxHold?: number) =>
    holdfast.semaphore(name, 50).acquire({ permits: 3, ...limit(maxHold) }),
  nested: async ({ holdfast, name }: Where, maxHold?: number) =>
    nestedIn(await holdfast.mutex(name).acquire(limit(maxHold)), maxHold),
  set: ({ holdfast, name }: Where, maxHold?: number) =>
    holdfast.all([name, `${name} 2`]).acquire(limit(maxHold)),
}

type Kind = keyof typeof KINDS
type Where = Pick<Scene, 'holdfast' | 'name'>

const nestedIn = (outer: Lease, maxHold = Infinity): Lease =>
  new NestedLease(unwatched(outer) as ClaimLease, 'exclusive', maxHold)

const limit = (maxHold?: number): { maxHold?: number } => (maxHold === undefined ? {} : { maxHold })

type Good = boolean | 'while held'

interface Happening {
  /** Whether the lease may still commit: always, never, or as it says itself; for what happens inside, if that differs. */
  readonly good: Good
  readonly goodInside?: Good
  readonly kinds?: readonly Kind[]
  readonly maxHold?: number
  readonly happen: (scene: Scene) => unknown
}

const many = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index)

const HAPPENINGS: Readonly<Record<string, Happening>> = {
  'nothing happens': { good: true, happen: () => {} },
  'its maxHold is over': {
    good: false,
    maxHold: MAX_HOLD,
    // Not a set, which might be lost before all of it is taken.
    kinds: ['mutex', 'writer', 'reader', 'permit', 'permits', 'nested'],
    happen: () => stall(2 * MAX_HOLD),
  },
  'its maxHold is over, and the next task is inside its own guard': {
    good: false,
    maxHold: MAX_HOLD,
    kinds: ['mutex', 'writer'],
    happen: async (scene) => {
      const next = scene.lease.name.includes('writer')
        ? scene.holdfast.readWriteLock(scene.name).write
        : scene.holdfast.mutex(scene.name)
      const lease = await next.acquire()
      await scene.guarding.guarded(lease, `${scene.name} next`, () => {})
    },
  },
  'it is released': { good: false, happen: ({ lease }) => lease.release() },
  'its Holdfast is closed': {
    good: 'while held',
    happen: ({ holdfast }) => {
      holdfast.close().catch(() => {})
    },
  },
  'sixty readers come and go in this process': {
    good: true,
    kinds: ['reader'],
    happen: ({ holdfast, name }) =>
      Promise.all(many(60).map(() => holdfast.readWriteLock(name).read.run(() => {}))),
  },
  'readers of another process come': {
    good: true,
    kinds: ['reader'],
    happen: ({ other, name }) => Promise.all(many(3).map(() => other.readWriteLock(name).read.acquire())),
  },
  'it becomes a reader’s, and readers come': {
    good: true,
    goodInside: false,
    kinds: ['writer'],
    happen: async ({ holdfast, other, name, lease }) => {
      await holdfast.readWriteLock(name).downgrade(lease)
      await Promise.all(many(20).map(() => holdfast.readWriteLock(name).read.acquire()))
      await other.readWriteLock(name).read.acquire()
    },
  },
  'other permits come and go, here and elsewhere': {
    good: true,
    kinds: ['permit', 'permits'],
    happen: ({ holdfast, other, name }) =>
      Promise.all(
        many(12).map((index) =>
          (index % 2 === 0 ? holdfast : other)
            .semaphore(name, 50)
            .run(() => {}, { permits: 1 + (index % 3), ttl: 5000 + index }),
        ),
      ),
  },
  'somebody waits for it': {
    good: true,
    kinds: ['mutex', 'writer', 'nested'],
    happen: ({ other, name, lease }) => {
      const waiting = lease.name.includes('writer')
        ? other.readWriteLock(name).write.acquire({ wait: 3000 })
        : other.mutex(name).acquire({ wait: 3000 })
      waiting.catch(() => {})
    },
  },
}

/** With the event loop at a stand, for databases whose work must not wait; timers come late then. */
function stall(ms: number): Promise<void> {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  return Promise.resolve()
}

let made = 0

/** Whatever happens to a lease before a guarded transaction or inside of it: it commits exactly when the lease is good. */
export function guardMatrix(open: () => Guarding, waits: boolean): void {
  const cases = (Object.keys(KINDS) as Kind[]).flatMap((kind) =>
    Object.entries(HAPPENINGS)
      .filter(([, { kinds }]) => kinds === undefined || kinds.includes(kind))
      .flatMap(([happening, how]) =>
        ['before', 'inside']
          .filter((when) => when === 'before' || waits || canBeInside(happening))
          .map((when) => ({ kind, happening, when, good: expectation(how, when) })),
      ),
  )

  it.each(cases)('$kind: $happening, $when: commits = $good', async ({ kind, happening, when, good }) => {
    const guarding = open()
    const { store, guarded, lines } = guarding
    const [holdfast, other] = [new Holdfast(store), new Holdfast(store)]
    const name = `matrix ${kind} ${(made += 1)}`
    const { happen, maxHold } = HAPPENINGS[happening] as Happening
    const lease = await KINDS[kind]({ holdfast, name }, maxHold)
    const scene = { holdfast, other, name, lease, guarding }
    if (when === 'before') await happen(scene)
    const result = await guarded(lease, name, () => (when === 'inside' ? happen(scene) : undefined)).then(
      () => 'committed',
      (error: unknown) => (error as { code?: string }).code,
    )
    const commits = good === 'while held' ? lease.held : good
    expect(result).toBe(commits ? 'committed' : 'LOCK_LOST')
    expect((await lines()).includes(name)).toBe(commits)
    if (commits) await lease.release()
    await Promise.all([holdfast.close({ drain: 0 }), other.close({ drain: 0 })])
  })
}

const expectation = ({ good, goodInside = good }: Happening, when: string): Good =>
  when === 'inside' ? goodInside : good

/** Where the work must not wait, only what happens at once can happen inside. */
const canBeInside = (happening: string): boolean =>
  ['nothing happens', 'its maxHold is over', 'it is released', 'its Holdfast is closed'].includes(happening)
