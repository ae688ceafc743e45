import { describe, expect, it } from 'vitest'

import { SoldOutCheck } from '../../../src/recipes/sold-out-check.ts'
import type { Lease } from '../../../src/runtime/lease.ts'

const LEASES = [5n, 6n, 7n].map(
  (token, at) => ({ name: `s${at}`, token, assertHeld: () => {} }) as unknown as Lease,
)
const turns = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Segments in memory. A look waits for `go`; a write does what `write` says. */
function shelf(values: number[]) {
  const state = {
    values,
    looks: 0,
    writes: [] as string[],
    go: (): void => {},
    write: (_segment: number, _value: number): Promise<boolean> => Promise.resolve(true),
  }
  const look = new SoldOutCheck(
    async (work) => {
      state.looks++
      await new Promise<void>((resolve) => (state.go = resolve))
      await work([...state.values], LEASES)
    },
    async (segment, value) => {
      state.writes.push(`${segment}=${value}`)
      const done = await state.write(segment, value)
      if (done) state.values[segment] = value
      return done
    },
  )
  return Object.assign(state, { look })
}

const parts = (taken: readonly { segment: number; quantity: number; left: number; token: bigint }[] | null) =>
  taken?.map(({ segment, quantity, left, token }) => [segment, quantity, left, token]) ?? null

describe('a look at all segments', () => {
  it('takes from as many as it needs, and writes each with its token', async () => {
    const s = shelf([2, 0, 5])
    const taken = s.look.take(4, undefined)
    await turns()
    s.go()
    expect(parts(await taken)).toEqual([
      [0, 2, 0, 5n],
      [2, 2, 3, 7n],
    ])
    expect(s.values).toEqual([0, 0, 3])
    expect(s.writes).toEqual(['0=0', '2=3'])
  })

  it('says null where there is not so much in all of them, and takes what is just enough', async () => {
    const s = shelf([1, 1, 1])
    const [much, all] = [s.look.take(4, undefined), s.look.take(3, undefined)]
    await turns()
    s.go()
    expect(await much).toBeNull()
    expect(parts(await all)).toHaveLength(3)
    expect(s.looks).toBe(1)
  })

  it('serves those who are there, and who comes meanwhile gets the next one', async () => {
    const s = shelf([1, 1, 1])
    const [first, second] = [s.look.take(1, undefined), s.look.take(1, undefined)]
    await turns()
    let third = Promise.resolve<unknown>(undefined)
    s.write = async () => {
      s.write = () => Promise.resolve(true)
      third = s.look.take(1, undefined)
      return true
    }
    s.go()
    await Promise.all([first, second])
    await turns()
    expect(s.looks).toBe(2)
    s.go()
    expect(parts((await third) as never)).toHaveLength(1)
    // When nobody asks, nobody looks.
    await turns()
    expect(s.looks).toBe(2)
  })

  it('goes on for the others when one leaves while it is under way', async () => {
    const s = shelf([9, 0, 0])
    const leaving = new AbortController()
    const [first, second] = [s.look.take(1, undefined), s.look.take(1, leaving.signal)]
    await turns()
    let third = Promise.resolve<unknown>(undefined)
    s.write = async () => {
      s.write = () => Promise.resolve(true)
      leaving.abort()
      third = s.look.take(1, undefined)
      return true
    }
    const left = second.catch((error: unknown) => error)
    s.go()
    expect(parts(await first)).toHaveLength(1)
    expect(await left).toMatchObject({ code: 'LOCK_ABORTED' })
    await turns()
    s.go()
    expect(parts((await third) as never)).toHaveLength(1)
  })

  it('in which all but the first have left ends well', async () => {
    const s = shelf([9, 0, 0])
    const leaving = new AbortController()
    const first = s.look.take(1, undefined)
    const left = s.look.take(1, leaving.signal).catch((error: unknown) => error)
    await turns()
    let failed: unknown
    const inner = s.look as unknown as { underAllLocks: (work: never) => Promise<void> }
    const { underAllLocks } = inner
    inner.underAllLocks = (work) =>
      underAllLocks(work).catch((error: unknown) => {
        failed = error
        throw error
      })
    s.write = () => {
      leaving.abort()
      return Promise.resolve(true)
    }
    s.go()
    await first
    expect(await left).toMatchObject({ code: 'LOCK_ABORTED' })
    await turns()
    const again = s.look.take(1, undefined)
    await turns()
    s.go()
    expect(parts(await again)).toHaveLength(1)
    expect(failed).toBeUndefined()
  })

  it('whose signal has aborted before asks nobody', async () => {
    const s = shelf([1, 1, 1])
    await expect(s.look.take(1, AbortSignal.abort())).rejects.toMatchObject({ code: 'LOCK_ABORTED' })
    await turns()
    expect(s.looks).toBe(0)
  })

  it('that fails is told to all who wait for it', async () => {
    const look = new SoldOutCheck(
      () => Promise.reject(new Error('no locks')),
      () => Promise.resolve(true),
    )
    await expect(Promise.all([look.take(1, undefined), look.take(1, undefined)])).rejects.toThrow('no locks')
    await expect(look.take(1, undefined)).rejects.toThrow('no locks')
  })

  it('puts back what it took when the next part is refused, and the next request looks afresh', async () => {
    const s = shelf([2, 2, 2])
    s.write = (segment) => Promise.resolve(segment !== 1 || s.writes.length > 3)
    const [first, second] = [s.look.take(3, undefined), s.look.take(1, undefined)]
    await turns()
    s.go()
    await expect(first).rejects.toMatchObject({ code: 'LOCK_LOST', lock: 's1', token: 6n })
    expect(s.writes).toEqual(['0=0', '1=1', '0=2'])
    expect(s.values).toEqual([2, 2, 2])
    await turns()
    expect(s.looks).toBe(2)
    s.go()
    expect(parts(await second)).toHaveLength(1)
  })

  it('tells of what it could not put back', async () => {
    const s = shelf([2, 2, 2])
    const broken = new Error('disk')
    s.write = () => (s.writes.length === 1 ? Promise.resolve(true) : Promise.reject(broken))
    const taken = s.look.take(3, undefined)
    await turns()
    s.go()
    const error = (await taken.catch((reason: unknown) => reason)) as {
      outcome: { value: never }
      cause: unknown
    }
    expect(error).toMatchObject({ code: 'LOCK_LOST', lock: 's0', token: 5n, cause: broken })
    expect(parts(error.outcome.value)).toEqual([[0, 2, 0, 5n]])
  })
})
