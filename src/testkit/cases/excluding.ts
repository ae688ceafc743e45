import assert from 'node:assert/strict'

import { ALL } from '../../core/contract.ts'
import type { HoldfastOptions } from '../../locks/options.ts'
import type { Case, CaseContext } from '../case.ts'
import { checkExclusivity } from '../checkers/exclusivity.ts'
import { checkFencedResource } from '../checkers/fenced-resource.ts'
import type { FencedWrite } from '../checkers/fenced-resource.ts'
import { checkLostUpdates } from '../checkers/lost-update.ts'
import type { Update } from '../checkers/lost-update.ts'
import { checkTokenOrder } from '../checkers/token-order.ts'
import { assertNone } from '../checkers/violation.ts'
import type { Recorder } from '../history.ts'
import { holdsOf } from '../holds.ts'
import { Client } from './client.ts'
import { assertNothingLeft, expected, openHoldfast, openHoldfasts, record, recorder } from './lock-kit.ts'

const TASKS = 100

export const excluding: readonly Case[] = [
  {
    id: 'lock/hundred',
    title: `${TASKS} tasks of three processes never overlap, lose no update and write in the order of their tokens`,
    needs: [],
    async run(ctx) {
      const holdfasts = await openHoldfasts(ctx)
      const name = ctx.name()
      const recorders = holdfasts.map((_, index) => recorder(ctx, `p${index}`))
      const updates: Update[] = []
      const writes: FencedWrite[] = []
      let counter = 0
      const task = async (index: number): Promise<void> => {
        const holdfast = holdfasts[index % 3] ?? holdfasts[0]
        await record(recorders[index % 3] ?? recorder(ctx, ''), holdfast.mutex(name), async (lease) => {
          const read = counter
          await ctx.sleep(ctx.env.random() * 2)
          counter = read + 1
          updates.push({ read, wrote: counter, outcome: 'stored' })
          const highest = writes.at(-1)?.token ?? 0n
          writes.push({ name, token: lease.token, accepted: lease.token >= highest })
        })
      }
      await Promise.all(Array.from({ length: TASKS }, (_, index) => task(index)))
      assert.equal(writes.length, TASKS)
      assertNone([...checkLostUpdates(updates, counter), ...checkFencedResource(writes)])
      assert.ok(
        writes.every(({ accepted }) => accepted),
        'no holder is fenced off while it holds the lock',
      )
      assertLawful(recorders)
      await assertNothingLeft(ctx, holdfasts[0], name)
    },
  },
  {
    id: 'lock/readers-writers',
    title: 'readers overlap with each other and never with a writer',
    needs: ['shared'],
    async run(ctx) {
      const holdfasts = await openHoldfasts(ctx)
      const name = ctx.name()
      const recorders = holdfasts.map((_, index) => recorder(ctx, `p${index}`))
      const readers = await Promise.all(holdfasts.map((each) => each.readWriteLock(name).read.acquire()))
      assert.ok(
        readers.every(({ held }) => held),
        'readers of several processes hold the lock together',
      )
      for (const reader of readers) await reader.release()
      const task = async (index: number): Promise<void> => {
        const { read, write } = (holdfasts[index % 3] ?? holdfasts[0]).readWriteLock(name)
        const [lock, weight] = index % 5 === 0 ? [write, ALL] : [read, 1]
        const body = (): Promise<void> => ctx.sleep(1 + ctx.env.random() * 4)
        await record(recorders[index % 3] ?? recorder(ctx, ''), lock, body, { weight, capacity: ALL })
      }
      await Promise.all(Array.from({ length: 60 }, (_, index) => task(index)))
      assertLawful(recorders)
      await assertNothingLeft(ctx, holdfasts[0], name)
    },
  },
  {
    id: 'lock/semaphore',
    title: 'a semaphore is never over its capacity, whatever the permits',
    needs: ['permits'],
    async run(ctx) {
      const capacity = 4
      const holdfasts = await openHoldfasts(ctx)
      const name = ctx.name()
      const recorders = holdfasts.map((_, index) => recorder(ctx, `p${index}`))
      const [first, second] = holdfasts
        .slice(1)
        .map((each) => each.semaphore(name, capacity).acquire({ permits: 2 }))
      for (const lease of [await first, await second])
        assert.ok(lease?.held, 'the whole capacity can be used')
      for (const lease of [await first, await second]) await lease?.release()
      let used = 0
      let most = 0
      const task = async (index: number): Promise<void> => {
        const lock = (holdfasts[index % 3] ?? holdfasts[0]).semaphore(name, capacity)
        const permits = 1 + (index % 7 === 0 ? 3 : index % 2)
        const body = async (): Promise<void> => {
          used += permits
          most = Math.max(most, used)
          await ctx.sleep(1 + ctx.env.random() * 4)
          used -= permits
        }
        await record(recorders[index % 3] ?? recorder(ctx, ''), lock, body, { permits, capacity })
      }
      await Promise.all(Array.from({ length: 60 }, (_, index) => task(index)))
      assertLawful(recorders)
      assert.ok(most <= capacity, `${most} permits of ${capacity} were taken at once`)
      await assertNothingLeft(ctx, holdfasts[0], name)
    },
  },
  {
    id: 'lock/strict',
    title: 'a process with many tasks gives way to another one at once when it is to be fair',
    needs: ['queue', 'push'],
    run: (ctx) => givesWay(ctx, { fair: 'strict' }, 5),
  },
  {
    id: 'lock/turns',
    title: 'a process with many tasks gives way to another one after its turn',
    needs: ['queue', 'push'],
    run: (ctx) => givesWay(ctx, { turn: { count: 10, ms: 60_000 } }, 15),
  },
]

function assertLawful(recorders: readonly Recorder[]): void {
  const holds = holdsOf(recorders.flatMap(({ events }) => events))
  assertNone([...checkExclusivity(holds), ...checkTokenOrder(holds)])
}

/** A process has a hundred tasks in line: somebody else has its turn after at most `most` of them. */
async function givesWay(ctx: CaseContext, options: HoldfastOptions, most: number): Promise<void> {
  const busy = await openHoldfast(ctx, { wait: Infinity, ...options })
  const other = await Client.open(ctx)
  const name = ctx.name()
  let sections = 0
  const task = (): Promise<void> =>
    busy.mutex(name).run(async () => {
      sections += 1
      // Long, beside what a message takes on a busy machine.
      await ctx.sleep(20)
    })
  const tasks = expected(Promise.all(Array.from({ length: TASKS }, task)))
  // By then it has tokens for many more, and no reason of its own to ask the store.
  await ctx.eventually('the third task runs', () => sections > 2)
  const waiting = await other.queue(other.request(name))
  const before = sections
  await other.granted(waiting, TASKS * 25 + ctx.grace)
  const overtaken = sections - before
  await other.release(waiting)
  assert.ok(overtaken <= most, `${overtaken} tasks of the other process went first`)
  await tasks
}
