import { once } from 'node:events'
import { describe, expect, it } from 'vitest'

import { Deadlines } from '../../../src/stores/sql/deadlines.ts'

/** Resolves with the marks in the order in which they came, when there are as many as expected. */
function marks(count: number): {
  readonly mark: (what: string) => () => void
  readonly all: Promise<string[]>
} {
  const target = new EventTarget()
  const seen: string[] = []
  const all = once(target, 'all').then(() => seen)
  const mark = (what: string) => () => {
    seen.push(what)
    if (seen.length === count) target.dispatchEvent(new Event('all'))
  }
  return { mark, all }
}

describe('deadlines that share a timer', () => {
  it('expire in the order of their times, whatever the order in which they were set', async () => {
    const deadlines = new Deadlines()
    const { mark, all } = marks(3)
    deadlines.add(60, mark('last'))
    deadlines.add(5, mark('first'))
    deadlines.add(30, mark('second'))
    expect(await all).toEqual(['first', 'second', 'last'])
  })

  it('never expire before their time', async () => {
    const deadlines = new Deadlines()
    const began = performance.now()
    const took = new Promise<number>((resolve) => {
      deadlines.add(20, () => resolve(performance.now() - began))
    })
    expect(await took).toBeGreaterThanOrEqual(20)
  })

  it('say nothing when what they are for was done in time', async () => {
    const deadlines = new Deadlines()
    const { mark, all } = marks(1)
    deadlines.delete(deadlines.add(5, mark('done in time')))
    deadlines.add(30, mark('late'))
    expect(await all).toEqual(['late'])
  })

  it('may set another when they expire', async () => {
    const deadlines = new Deadlines()
    const { mark, all } = marks(2)
    deadlines.add(40, mark('second'))
    deadlines.add(5, () => deadlines.add(5, mark('first')))
    expect(await all).toEqual(['first', 'second'])
  })
})
