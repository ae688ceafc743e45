import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import type { Session } from '../../../src/runtime/session.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { changed, plainStore } from '../testkit/lesser-stores.ts'
import { world } from './far-store.ts'
import type { World } from './far-store.ts'

/** Two tasks of one process, and one of another that came between them: who has it, in order. */
async function order(
  w: World,
  tasks: readonly (readonly [string, Promise<{ release(): Promise<unknown> }>])[],
): Promise<string[]> {
  const seen: string[] = []
  const run = async ([who, acquired]: (typeof tasks)[number]): Promise<void> => {
    const lease = await acquired
    seen.push(who)
    await lease.release()
  }
  await w.env.until(Promise.all(tasks.map(run)))
  return seen
}

describe('a queue that formed', () => {
  it('before this process listened is asked about when it begins to', async () => {
    const w = world()
    const [a, b] = [w.process({ fair: 'strict' }), w.process({ fair: 'strict' })]
    const first = await w.env.until(a.holdfast.mutex('x').acquire())
    expect(a.store.count('watch')).toBe(0)
    const others = b.holdfast.mutex('x').acquire()
    await w.env.advance(10)
    const own = a.holdfast.mutex('x').acquire()
    await w.env.advance(10)
    expect(a.store.count('watch')).toBe(1)
    await w.env.until(first.release())
    expect(
      await order(w, [
        ['own', own],
        ['others', others],
      ]),
    ).toEqual(['others', 'own'])
  })

  it('is known although the message about it came before the answer “held”', async () => {
    const w = world()
    const [a, b] = [w.process({ fair: 'strict' }), w.process({ fair: 'strict' })]
    const { session } = a.holdfast as unknown as { session: Session }
    session.listen()
    await w.env.advance(1)
    a.store.back = 20
    const first = a.holdfast.mutex('x').acquire()
    await w.env.advance(5)
    const others = b.holdfast.mutex('x').acquire()
    await w.env.advance(5)
    const own = a.holdfast.mutex('x').acquire()
    const lease = await w.env.until(first)
    a.store.back = 0
    await w.env.until(lease.release())
    expect(
      await order(w, [
        ['own', own],
        ['others', others],
      ]),
    ).toEqual(['others', 'own'])
  })

  it('where nobody is told anything is left a chance after a turn: this process asks after a pause', async () => {
    const env = new VirtualEnv()
    const plain = plainStore(memoryStore({ now: () => env.instant() }))
    const asked: number[] = []
    const store = changed(plain, {
      claim: async (request, timeout) => {
        asked.push(env.mono())
        const answer = await plain.claim(request, timeout)
        return answer.kind === 'held' ? { ...answer, contended: true } : answer
      },
    })
    const holdfast = new Holdfast(store, { env, fair: 'strict' })
    let pauses = 0
    for (let times = 0; times < 20; times++) {
      asked.length = 0
      const first = await env.until(holdfast.mutex('x').acquire())
      const second = holdfast.mutex('x').acquire()
      await env.settle()
      const released = env.mono()
      await env.until(first.release())
      await env.until((await env.until(second)).release())
      expect(asked.at(-1)).toBeGreaterThan(released)
      expect((asked.at(-1) ?? 0) - released).toBeLessThan(12)
      if ((asked.at(-1) ?? 0) - released > 2) pauses++
      await env.advance(100)
    }
    expect(pauses).toBeGreaterThan(5)
    await env.until(holdfast.close())
  })
})
