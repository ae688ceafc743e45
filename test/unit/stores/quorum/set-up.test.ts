import { describe, expect, it } from 'vitest'

import type { Voter } from '../../../../src/core/contract.ts'
import { setUp } from '../../../../src/stores/quorum/set-up.ts'

type Said = { readonly kind: 'unused'; readonly server: string } | { readonly kind: 'used' | 'unknown' }
const unused = (server: string): Said => ({ kind: 'unused', server })
const used: Said = { kind: 'used' }
const silent: Said = { kind: 'unknown' }

/** Stores that say this at the first look, that at the second, and so on; the last one for ever. */
async function begun(...answers: Said[][]): Promise<string[]> {
  const told: string[] = []
  const voters = answers.map((said) => ({
    unused: () => (said.length > 1 ? said.shift() : said[0]),
    begin: (server: string) => {
      told.push(server)
      return { kind: 'begun' }
    },
  }))
  const setTimer = (callback: () => void): (() => void) => {
    queueMicrotask(callback)
    return () => {}
  }
  await setUp(voters as unknown as Voter[], { probation: 1_000, timeout: 1_000, setTimer })
  return told
}

describe('the stores of a quorum are let vote at once', () => {
  it('if all were unused at one moment', async () => {
    expect(await begun([unused('a')], [unused('b')], [unused('c')])).toEqual(['a', 'b', 'c'])
  })

  it('never if one was used, does not say, or is one server with another', async () => {
    expect(await begun([unused('a')], [unused('b')], [used])).toEqual([])
    expect(await begun([unused('a')], [unused('b')], [silent])).toEqual([])
    expect(await begun([unused('a')], [unused('b')], [unused('a')])).toEqual([])
  })

  it('never if the first answers were old when the last one came', async () => {
    // While the third was waited for, the first two gave votes, and so did the one in whose place it is.
    expect(await begun([unused('a'), used], [unused('b'), used], [unused('c')])).toEqual([])
  })

  it('never if another server has taken the place of one between two looks', async () => {
    const turns = ['c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'].map(unused)
    expect(await begun([unused('a')], [unused('b')], turns)).toEqual([])
  })

  it('not when somebody else has done so meanwhile', async () => {
    expect(await begun([used], [unused('b'), used], [unused('c'), used])).toEqual([])
  })

  it('does not wait for a store that is down once most are known to be in use', async () => {
    const down = { unused: () => new Promise(() => {}), begin: () => ({ kind: 'begun' }) }
    const busy = { unused: () => used, begin: () => ({ kind: 'begun' }) }
    const voters = [busy, busy, down] as unknown as Voter[]
    const done = setUp(voters, { probation: 1_000, timeout: 1_000, setTimer: () => () => {} })
    await expect(done).resolves.toBeUndefined()
  })

  it('needs no looking where empty stores vote at once anyway, or cannot prove anything', () => {
    const terms = { timeout: 1_000, setTimer: () => () => {} }
    expect(setUp([], { ...terms, probation: 0 })).toBeUndefined()
    expect(setUp([{} as Voter], { ...terms, probation: 1_000 })).toBeUndefined()
  })
})
