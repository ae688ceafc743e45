import { afterEach, describe, expect, it } from 'vitest'

import { available, redis } from '../../scripts/services.mjs'
import { endAll, lockServer, run } from './cli.ts'

afterEach(endAll)

interface Result {
  readonly label: string
  readonly sold: number
  readonly oversold: number
  readonly perSecond: number
  readonly longestWait: number
  readonly handOver?: { readonly token: string; readonly nextToken: string; readonly after: number }
}

describe('the demo', () => {
  it('oversells without a lock, does not with one, and hands over from a seller that was killed', async () => {
    const { code, stdout, stderr } = await run(['demo', '--json', '--tickets', '40', '--sellers', '3'])
    expect(stderr).toBe('')
    expect(code).toBe(0)
    const [without, locked, killed] = JSON.parse(stdout) as readonly Result[]
    expect(without?.oversold).toBeGreaterThan(0)
    expect(without?.sold).toBe(40 + (without?.oversold ?? 0))
    expect(locked).toMatchObject({ sold: 40, oversold: 0 })
    expect(killed).toMatchObject({ sold: 40, oversold: 0 })
    const { token = '0', nextToken = '0', after = 0 } = killed?.handOver ?? {}
    expect(BigInt(nextToken)).toBeGreaterThan(BigInt(token))
    // The dead seller's lease of 2 s has to end, less what of it had passed.
    expect(after).toBeGreaterThan(1000)
    expect(after).toBeLessThan(5000)
  })

  it('uses the store it is given, and ends in a table', async () => {
    const server = await lockServer()
    try {
      const { code, stdout } = await run(['demo', '--tickets', '20', '--sellers', '2'], { url: server.url })
      expect(code).toBe(0)
      expect(stdout).toContain(`The locks are at ${server.url}.`)
      expect(stdout).toMatch(
        /Seller \d was killed in the middle of a sale, holding token \d+\.\nSeller \d had the lock [\d.]+s later/,
      )
      expect(stdout).toMatch(
        /^RUN +SOLD +OVERSOLD +SECTIONS\/S +LONGEST WAIT\nwithout a lock +\d+ of 20 [^]*with holdfast +20 of 20 +0 /m,
      )
    } finally {
      server.kill('SIGKILL')
    }
  })

  it.skipIf(!available('redis'))('does the same on Redis', async () => {
    await using server = await redis()
    const { code, stdout } = await run(['demo', '--json', '--tickets', '20', '--sellers', '2'], {
      url: server.url,
    })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject([{}, { sold: 20, oversold: 0 }, { sold: 20, oversold: 0 }])
  })

  it('says at once that a store cannot be reached or shared', async () => {
    expect((await run(['demo'], { url: 'holdfast://127.0.0.1:1' })).code).toBe(69)
    expect((await run(['demo'], { url: 'memory:' })).code).toBe(64)
  })
})
