import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, memcached } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Clocks } from '../../../src/lab/sim/clocks.ts'
import { CasServer } from '../../../src/lab/sim/stores/cas-server.ts'
import { Random } from '../../../src/testkit/random.ts'
import { talk } from '../../stores/memcached/kit.ts'

const SEQUENCES = 10
const LENGTH = 40
const KEYS = ['a', 'b']
const LONG_S = 100

describe.skipIf(!available('memcached'))('the simulated CAS server does what memcached does', () => {
  let server: Server

  beforeAll(async () => void (server = await memcached()))
  afterAll(() => server.stop())

  /** One command of the meta protocol. */
  const ask = async (text: string): Promise<string[]> => {
    const whole = (all: string): boolean =>
      all.startsWith('VA') ? /\r\n.*\r\n$/s.test(all) : all.endsWith('\r\n')
    return (await talk(server, `${text}\r\n`, whole)).trimEnd().split('\r\n')
  }
  const get = async (key: string): Promise<{ value: string; cas: string } | undefined> => {
    const [head = '', value = ''] = await ask(`mg ${key} v c`)
    return head === 'EN' ? undefined : { value, cas: / c(\d+)/.exec(head)?.[1] ?? '' }
  }
  const words: Record<string, string> = { EX: 'exists', NF: 'missing' }

  it.each(Array.from({ length: SEQUENCES }, (_, index) => index + 1))('sequence %i', async (seed) => {
    const random = new Random(seed)
    const simulated = new CasServer(new Clocks(() => 0))
    await ask('flush_all')
    /** Pairs of CAS values that stand for the same state, the newest last. */
    const known = KEYS.map(() => [{ real: '999999', simulated: 999_999 }])
    for (let step = 0; step < LENGTH; step++) {
      const at = random.below(KEYS.length)
      const key = KEYS[at] as string
      const value = String(random.below(1000)).padStart(3, '0')
      const pairs = known[at] as { real: string; simulated: number }[]
      // Mostly the newest, now and then one that is out of date.
      const pair = (
        random.next() < 0.7 ? pairs.at(-1) : pairs[random.below(pairs.length)]
      ) as (typeof pairs)[0]
      const said: { real: unknown; simulated: unknown } = { real: undefined, simulated: undefined }
      switch (random.below(6)) {
        case 0: {
          const [code] = await ask(`ms ${key} 3 T${LONG_S} ME\r\n${value}`)
          said.real = code === 'HD'
          said.simulated = simulated.add(key, value, LONG_S)
          break
        }
        case 1: {
          const [code = ''] = await ask(`ms ${key} 3 T${LONG_S} C${pair.real}\r\n${value}`)
          said.real = words[code] ?? 'stored'
          said.simulated = simulated.cas(key, value, pair.simulated, LONG_S)
          break
        }
        case 2: {
          const [code = ''] = await ask(`md ${key} C${pair.real}`)
          said.real = words[code] ?? 'removed'
          said.simulated = simulated.remove(key, pair.simulated)
          break
        }
        case 3: {
          const [, number] = await ask(`ma ${key}-n N${LONG_S} J100 D7 T${LONG_S} v`)
          said.real = Number(number)
          said.simulated = simulated.increase(`${key}-n`, 7, 100, LONG_S)
          break
        }
        default: {
          const [real, mine] = [await get(key), simulated.get(key)]
          said.real = real?.value
          said.simulated = mine?.value
          if (real !== undefined && mine !== undefined) pairs.push({ real: real.cas, simulated: mine.cas })
        }
      }
      expect({ seed, step, said: said.simulated }).toEqual({ seed, step, said: said.real })
    }
  })

  it('an item ends on a whole second: never later than asked for, and up to a second earlier', async () => {
    const asked = 2
    await ask(`ms short 1 T${asked}\r\nx`)
    const began = performance.now()
    while ((await get('short')) !== undefined) expect(performance.now() - began).toBeLessThan(5000)
    const real = (performance.now() - began) / 1000

    let now = 0
    const lives = (from: number): number => {
      now = from
      const simulated = new CasServer(new Clocks(() => now))
      simulated.add('short', 'x', asked)
      while (simulated.get('short') !== undefined) now += 1
      return (now - from) / 1000
    }
    const [longest, shortest] = [lives(0), lives(999)]
    // The real clock is moved by a timer that is late by a little.
    expect(real).toBeLessThanOrEqual(longest + 0.3)
    expect(real).toBeGreaterThanOrEqual(shortest - 0.3)
  })
})
