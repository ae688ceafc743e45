import { describe, expect, it } from 'vitest'

import { Holdfast } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import type { Claim } from '../../../src/runtime/claim.ts'
import {
  claimOf,
  comingIn,
  lastComing,
  NO_CLAIMS,
  noLongerComing,
  sizeOf,
  withClaim,
  withFirst,
  without,
} from '../../../src/runtime/claims.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { Random } from '../../../src/testkit/random.ts'
import { isClean, world } from './far-store.ts'

type Sketch = Pick<Claim, 'id' | 'state' | 'only'>

const isComing = ({ state, only }: Sketch): boolean => state !== 'held' && state !== 'gone' && only === null

/** A few claims and very many, by turns: the same steps on a plain list must show the same. */
function walk(seed: number): readonly string[] {
  const wrong: string[] = []
  const names = (claims: Iterable<Claim>): string => [...claims].map(({ id }) => id).join()
  const random = new Random(seed)
  let claims = NO_CLAIMS
  let list: Claim[] = []
  const made = (n: number, state: Claim['state'], only: unknown): Claim =>
    ({ id: `${seed}.${n}`, state, only }) as Claim
  for (let n = 0; n < 400; n++) {
    const growing = Math.floor(n / 100) % 2 === 0
    const chosen = list[Math.floor(random.next() * list.length)]
    const dice = random.next()
    if (chosen === undefined || dice < (growing ? 0.6 : 0.2)) {
      const claim = made(n, 'asking', random.next() < 0.2 ? {} : null)
      claims = withClaim(claims, claim)
      list = [...list, claim]
    } else if (dice < 0.65) {
      const claim = made(n, 'held', null)
      claims = withFirst(claims, claim)
      list = [claim, ...list]
    } else if (dice < 0.75) {
      if (chosen.state === 'held') continue
      noLongerComing(claims, chosen)
      chosen.state = 'held'
      chosen.only = null
    } else {
      const gone = dice < 0.8 ? (lastComing(claims) ?? chosen) : chosen
      noLongerComing(claims, gone)
      gone.state = 'gone'
      claims = without(claims, gone)
      list = list.filter((other) => other !== gone)
    }
    const some = list.slice(0, 3).map(({ id }) => id)
    const found = [...some, 'a stranger'].map((id) => claimOf(claims, id)?.id ?? null)
    const shown = [names(claims), sizeOf(claims), comingIn(claims), lastComing(claims)?.id, found]
    const coming = list.filter(isComing)
    const wanted = [names(list), list.length, coming.length, coming.at(-1)?.id, [...some, null]]
    if (JSON.stringify(shown) !== JSON.stringify(wanted)) wrong.push(`step ${n}: ${shown.join(' ')}`)
  }
  return wrong
}

describe('the claims of a lane', () => {
  it('are the same, few or many', () => {
    expect([1, 2, 3, 4, 5, 6].flatMap(walk)).toEqual([])
  })
})

describe('a semaphore of many permits', () => {
  it('serves those in line in their order, and leaves nothing of those that gave up', async () => {
    const w = world()
    const [a, b] = [w.process(), w.process()]
    const all = await w.env.until(b.holdfast.semaphore('s', 40).acquire({ permits: 40 }))
    const order: number[] = []
    const controllers = Array.from({ length: 60 }, () => new AbortController())
    const waits = controllers.map(({ signal }, n) =>
      a.holdfast
        .semaphore('s', 40)
        .acquire({ signal })
        .then(
          (lease) => (order.push(n), lease),
          () => null,
        ),
    )
    await w.env.advance(50)
    for (const [n, controller] of controllers.entries()) if (n % 3 === 0) controller.abort()
    await w.env.advance(50)
    await w.env.until(all.release())
    const leases = (await w.env.until(Promise.all(waits))).filter((lease): lease is Lease => lease !== null)
    expect(order).toEqual(controllers.map((_, n) => n).filter((n) => n % 3 !== 0))
    await w.env.until(Promise.all(leases.map((lease) => lease.release())))
    await w.env.advance(100)
    expect(await isClean(w, 's')).toBe(true)
  })

  it('costs as much as there are permits, and not their square', async () => {
    const semaphore = new Holdfast(memoryStore(), { leakWarnings: false }).semaphore('s', 15_000)
    const before = process.cpuUsage()
    const leases = await Promise.all(Array.from({ length: 15_000 }, () => semaphore.acquire()))
    for (const lease of leases) await lease.release()
    // A quarter of a second, and six when each of them walked along all others. Of work: the machine may be busy.
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1000).toBeLessThan(3000)
  })
})
