import { describe, expect, it } from 'vitest'

import { roomIn } from '../../../../src/stores/sql/room.ts'

describe('the room for guarded transactions in a pool', () => {
  const busy = (): { readonly work: () => Promise<void>; readonly end: () => void } => {
    let end = (): void => {}
    const work = new Promise<void>((resolve) => (end = resolve))
    return { work: () => work, end }
  }

  it('is one for all stores on the pool, and leaves what the neediest of them needs', async () => {
    const pool = {}
    const rooms = [roomIn(pool, 5, 1), roomIn(pool, 5, 2), roomIn(pool, 5, 1), roomIn({}, 5, 2)]
    const begun: number[] = []
    const ends: (() => void)[] = []
    const all = [0, 1, 2, 0, 1, 2, 3].map(async (index) => {
      const { work, end } = busy()
      ends.push(end)
      await rooms[index]?.use(() => {
        begun.push(index)
        return work()
      })
    })
    await Promise.resolve()
    // Three of the one pool, and the one of the other.
    expect(begun).toEqual([0, 1, 2, 3])
    ends[1]?.()
    await all[1]
    expect(begun).toEqual([0, 1, 2, 3, 0])
    for (const end of ends) end()
    await Promise.all(all)
    expect(begun).toHaveLength(7)
  })

  it('has place for one, however few the connections are', async () => {
    expect(await roomIn({}, 1, 2).use(() => Promise.resolve('done'))).toBe('done')
  })

  it('goes on when work fails', async () => {
    const room = roomIn({}, 1, 1)
    await expect(room.use(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await room.use(() => Promise.resolve('done'))).toBe('done')
  })
})
