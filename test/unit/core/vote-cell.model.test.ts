import { describe, expect, it } from 'vitest'

import { explore, realRules } from './vote-model.ts'
import type { Rules, Story } from './vote-model.ts'

/** Votes only, with blocks of two and one. */
const votes: Story = { counts: [2, 1], twice: 0, renews: false }
const votesTwice: Story = { ...votes, twice: 1 }
// From its beginning on it is a matter of minutes: `MODEL=whole` does that.
const held = process.env['MODEL'] !== 'whole'
const renewal: Story = { held, counts: [1, 1], twice: 1, renews: { tokens: 0 } }
const moreTokens: Story = { held, counts: [1, 1], twice: 1, renews: { tokens: 2 } }

describe('the rule of votes, in every order of events', () => {
  it.each([
    ['votes', votes],
    ['votes that arrive twice', votesTwice],
    ['a renewal', renewal],
    ['a renewal with new tokens', moreTokens],
  ])(
    'gives no token twice and lets nobody renew who was overtaken: %s',
    (_, story) => {
      const { states, violation } = explore(story, realRules)
      expect(violation).toBeUndefined()
      expect(states).toBeGreaterThan(1000)
    },
    300_000,
  )
})

describe('anything less breaks', () => {
  const cases: readonly [string, Story, Partial<Rules>][] = [
    [
      'a token that is one more than the highest seen, and not written back',
      votes,
      {
        choose: (proposals) => ({ token: Math.max(...proposals) + 1, writeBack: false }),
      },
    ],
    [
      'the highest proposal, not written back',
      votes,
      {
        choose: (proposals) => ({ token: Math.max(...proposals), writeBack: false }),
      },
    ],
    [
      'written back also where somebody else holds it by now',
      votes,
      {
        confirm: (cell, { token, count }) => {
          cell.fence = Math.max(cell.fence, Number(token) + count - 1)
          return { kind: 'confirmed' }
        },
      },
    ],
    [
      'written back without a look at when the claim began to hold it',
      votesTwice,
      {
        confirm: (cell, request) => realRules.confirm(cell, { ...request, base: 1_000_000n }),
      },
    ],
    [
      'a fence that is raised to the first token of a block only',
      votes,
      {
        confirm: (cell, request) => realRules.confirm(cell, { ...request, count: 1 }),
      },
    ],
    [
      'a renewal that looks at the owner only',
      renewal,
      {
        extend: (cell, request) => realRules.extend(cell, { ...request, top: 1_000_000n, mode: 'keep' }),
      },
    ],
    [
      'a lease that is restored wherever nobody holds it',
      renewal,
      {
        extend: (cell, request) => {
          if (cell.holder !== null) return realRules.extend(cell, request)
          return realRules.extend({ ...cell, fence: 0 }, request)
        },
      },
    ],
    ['a store that loses its memory and votes at once', votes, { amnesia: true }],
  ]

  it.each(cases)(
    '%s',
    (_, story, broken) => {
      const { violation } = explore(story, { ...realRules, ...broken })
      expect(violation).toBeDefined()
    },
    300_000,
  )
})
