import { describe, expect, it } from 'vitest'

import { world } from './far-store.ts'

describe('a claim that the store does not answer', () => {
  it.each([
    [
      { kind: 'unknown', cause: new Error('WRONGPASS invalid password.'), retryable: false },
      'The far store cannot be used, so "x" was not acquired: WRONGPASS invalid password.',
    ],
    [
      { kind: 'unknown', cause: new Error('READONLY a replica\nin full') },
      'The far store could not be asked, so "x" was not acquired: READONLY a replica. Check that it runs, can be reached and takes writes.',
    ],
    [
      { kind: 'unknown', cause: 7 },
      'The far store could not be asked, so "x" was not acquired. Check that it runs, can be reached and takes writes.',
    ],
  ] as const)('is told with what was said: %o', async (answer, message) => {
    const w = world()
    const { holdfast, store } = w.process()
    store.claim = () => answer
    store.inspect = () => answer
    await expect(w.env.until(holdfast.mutex('x').acquire({ wait: 100 }))).rejects.toThrow(message)
    await expect(holdfast.inspect('x')).rejects.toThrow(message.replace(', so "x" was not acquired', ''))
  })

  it('is asked for again soon, and then with pauses that grow to a second', async () => {
    const w = world()
    const { holdfast, store } = w.process({ requestTimeout: 100 })
    const asked: number[] = []
    store.claim = () => {
      asked.push(w.env.mono())
      return { kind: 'unknown', cause: new Error('no') }
    }
    const acquired = holdfast
      .mutex('x')
      .acquire({ wait: 20_000 })
      .catch((error: unknown) => error)
    await w.env.advance(19_000)
    const pauses = asked.slice(1).map((at, index) => at - (asked[index] ?? 0))
    expect(pauses[0]).toBeLessThanOrEqual(26)
    expect(pauses[1]).toBeLessThanOrEqual(51)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1_001)
    expect(Math.min(...pauses.slice(-10))).toBeGreaterThanOrEqual(500)
    expect(await w.env.until(acquired)).toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('is asked for again at once when somebody else here comes, who has no part in that', async () => {
    const w = world()
    const { holdfast, store } = w.process({ requestTimeout: 100 })
    store.lose('claim', 'request', Infinity)
    const first = holdfast.mutex('x').acquire({ wait: 60_000 })
    await w.env.advance(20_000)
    // In the middle of a pause.
    const asked = store.count('claim')
    while (store.count('claim') === asked) await w.env.advance(1)
    await w.env.advance(150)
    store.heal()
    const came = w.env.mono()
    const second = holdfast.mutex('x').acquire({ wait: 60_000 })
    await w.env.until((await w.env.until(first)).release())
    await w.env.until((await w.env.until(second)).release())
    expect(w.env.mono() - came).toBeLessThan(20)
  })
})
