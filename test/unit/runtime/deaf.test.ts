import { describe, expect, it } from 'vitest'

import type { Unknown, Watch } from '../../../src/core/contract.ts'
import { world } from './far-store.ts'
import type { Process } from './far-store.ts'

const SILENT: Unknown = { kind: 'unknown', cause: new Error('swallowed') }

/** Its commands work. What becomes of its wish to be told is the test's to say, as with a new connection that a proxy swallows. */
function deaf(process: Process) {
  const answers: ((answer: Watch | Unknown) => void)[] = []
  process.store.watch = () => new Promise((resolve) => answers.push(resolve))
  return answers
}

describe('a waiter that the store does not tell yet', () => {
  it('asks again meanwhile, and has what becomes free', async () => {
    const { env, process } = world()
    const [a, b] = [process(), process()]
    const answers = deaf(b)
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire({ wait: 4000 })
    await env.advance(1000)
    expect(answers).toHaveLength(1)
    const before = env.mono()
    await env.until(first.release())
    await env.until(second)
    expect(env.mono() - before).toBeLessThanOrEqual(1000)
  })

  it('stands in line as soon as it would be told', async () => {
    const { env, process } = world()
    const [a, b] = [process(), process()]
    const watch = b.store.watch.bind(b.store)
    b.store.watch = async (...rest) => {
      await env.sleep(3000)
      return watch(...rest)
    }
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(3010)
    expect((await env.until(a.holdfast.inspect('x'))).waiters).toHaveLength(1)
    await env.until(first.release())
    await env.until(second)
  })

  it('wishes to be told once a second, and not with each question', async () => {
    const { env, process } = world()
    const [a, b] = [process(), process()]
    let wishes = 0
    b.store.watch = () => (wishes++, SILENT)
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(10_000)
    expect(wishes).toBeGreaterThan(5)
    expect(wishes).toBeLessThanOrEqual(11)
    await env.until(first.release())
    await env.until(second)
  })
})
