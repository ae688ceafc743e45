import { describe, expect, it } from 'vitest'

import { available, memcached } from '../../../scripts/services.mjs'
import { Holdfast } from '../../../src/index.ts'
import { memcachedStore } from '../../../src/stores/memcached/index.ts'
import { Rivals } from '../../../src/stores/memcached/rivals.ts'

const PROCESSES = 8
const FOR_MS = 4000

describe('whether others want a name too', () => {
  it('is told by a counter that went further than our own requests took it', () => {
    const rivals = new Rivals()
    expect(rivals.seen('a', 1000, 1)).toBe(false)
    expect(rivals.seen('a', 1004, 4)).toBe(false)
    expect(rivals.seen('a', 1009, 4)).toBe(true)
    expect(rivals.seen('a', 1010, 1)).toBe(false)
    expect(rivals.seen('b', 5000, 1)).toBe(false)
    expect(rivals.seen('a', 1011, 1)).toBe(false)
    expect(rivals.seen('b', 5002, 1)).toBe(true)
    expect(rivals.seen('a', NaN, 1)).toBe(false)
    expect(rivals.seen('a', 2000, 1)).toBe(false)
  })

  it('is remembered for some names only', () => {
    const rivals = new Rivals()
    for (let i = 0; i < 5000; i++) expect(rivals.seen(`name ${i}`, 10, 1)).toBe(false)
    expect(rivals.seen('name 4999', 20, 1)).toBe(true)
    expect(rivals.seen('name 0', 20, 1)).toBe(false)
  })
})

describe.skipIf(!available('memcached'))('processes that compete for one name', () => {
  it.each([1, 4])('get at least a third of the fair share each, with %i tasks', async (tasks) => {
    await using server = await memcached()
    const sections = Array<number>(PROCESSES).fill(0)
    const end = performance.now() + FOR_MS
    await Promise.all(
      sections.map(async (_, index) => {
        const holdfast = new Holdfast(memcachedStore(`memcached://127.0.0.1:${server.port}`))
        const task = async (): Promise<void> => {
          while (performance.now() < end) {
            await holdfast.mutex('x').run(() => new Promise((resolve) => setTimeout(resolve, 5)))
            sections[index] = (sections[index] ?? 0) + 1
          }
        }
        await Promise.all(Array.from({ length: tasks }, task))
        await holdfast.close()
      }),
    )
    const fair = sections.reduce((sum, each) => sum + each, 0) / PROCESSES
    expect(Math.min(...sections) / fair).toBeGreaterThan(1 / 3)
  })
})
