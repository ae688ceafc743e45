import { describe, expect, it } from 'vitest'

import type { ClaimRequest } from '../../../../src/core/contract.ts'
import { keysOf, RecentKeys } from '../../../../src/stores/redis/keys.ts'
import { ClaimTerms } from '../../../../src/stores/redis/wire.ts'

describe('the keys of recent names', () => {
  it('are those of the name, the first time and again, however many names there are', () => {
    const keys = new RecentKeys('hf')
    const names = Array.from({ length: 1000 }, (_, at) => `{name} ${at}`)
    for (const name of [...names, ...names.toReversed()]) {
      expect(keys.of(name)).toEqual(keysOf('hf', name))
      expect(keys.of(name)).toEqual(keysOf('hf', name))
    }
  })
})

describe('the terms of a claim', () => {
  const request: ClaimRequest = {
    name: 'n',
    id: 's.1',
    weight: 1,
    capacity: 2,
    ttl: 30_000,
    patience: 5000,
    tokens: 3,
    whenBusy: 'try',
    owner: 'me',
  }
  const others: Partial<ClaimRequest>[] = [
    { weight: 2 },
    { capacity: 9 },
    { ttl: 15_000 },
    { patience: 10 },
    { tokens: 64 },
    { owner: 'somebody else' },
  ]

  it.each(others)('are its own also after those of another one: %o', (change) => {
    const terms = new ClaimTerms()
    const fresh = new ClaimTerms().of({ ...request, ...change })
    expect(terms.of(request)).toBe('3 1 2 30000 5000 me')
    expect(terms.of({ ...request, ...change })).toBe(fresh)
    expect(fresh).not.toBe('3 1 2 30000 5000 me')
    expect(terms.of(request)).toBe('3 1 2 30000 5000 me')
  })

  it.each(others)('follow a request that is used again with other ones: %o', (change) => {
    const terms = new ClaimTerms()
    const used = { ...request }
    terms.of(used)
    expect(terms.of(Object.assign(used, change))).toBe(new ClaimTerms().of({ ...request, ...change }))
  })

  it('are the same for another name and another claim', () => {
    const terms = new ClaimTerms()
    expect(terms.of({ ...request, name: 'other', id: 's.2', whenBusy: 'queue' })).toBe(terms.of(request))
  })
})
