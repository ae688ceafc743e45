import { describe, expect, it } from 'vitest'

import { Call } from '../../../../src/stores/sql/client.ts'
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

  it('has calls wait for each other, and leaves what renewals need; they wait for nobody', async () => {
    const room = roomIn({}, 5, 2)
    const begun: string[] = []
    const ends: (() => void)[] = []
    const make = (name: string, call: Call): Promise<void> =>
      room.call(call, () => {
        begun.push(name)
        const { work, end } = busy()
        ends.push(end)
        return work()
      })
    const calls = ['a', 'b', 'c', 'd', 'e', 'f'].map(() => new Call())
    const all = calls.map((call, index) => make(String(index), call).catch(() => {}))
    const urgent = make('urgent', Object.assign(new Call(), { urgent: true }))
    expect(begun).toEqual(['0', '1', '2', 'urgent'])
    // One whose time is over in line sends nothing, and lets the next one go.
    calls[3]?.expire()
    ends[0]?.()
    await all[0]
    await all[3]
    await Promise.resolve()
    expect(begun).toEqual(['0', '1', '2', 'urgent', '4'])
    while (begun.length < 6) {
      for (const end of ends) end()
      await Promise.resolve()
    }
    for (const end of ends) end()
    await Promise.all([...all, urgent])
    expect(begun).toEqual(['0', '1', '2', 'urgent', '4', '5'])
  })

  it('has place for one, however few the connections are', async () => {
    expect(await roomIn({}, 1, 2).use(() => Promise.resolve('done'))).toBe('done')
  })

  it('refuses work inside of work that would wait for ever, and only that', async () => {
    const one = roomIn({}, 1, 1)
    const inner = (): Promise<string> => one.use(() => Promise.resolve('inner'))
    await expect(one.use(inner)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', argument: 'work' })
    expect(await inner()).toBe('inner')

    const two = roomIn({}, 3, 1)
    expect(await two.use(() => two.use(() => Promise.resolve('inner')))).toBe('inner')
    // Somebody else has the second place, and will be done.
    const other = busy()
    const others = two.use(other.work)
    const waits = two.use(() => two.use(() => Promise.resolve('inner')))
    await Promise.resolve()
    other.end()
    await others
    expect(await waits).toBe('inner')
    // Each of two waits for the other: one of them is told, and lets the other go on.
    const nest = (): Promise<string> =>
      two.use(() => Promise.resolve().then(() => two.use(() => Promise.resolve('inner'))))
    const results = await Promise.allSettled([nest(), nest()])
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  it('goes on when work fails', async () => {
    const room = roomIn({}, 1, 1)
    await expect(room.use(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await room.use(() => Promise.resolve('done'))).toBe('done')
  })
})
