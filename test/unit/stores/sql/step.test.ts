import { describe, expect, it } from 'vitest'

import type { QueueCommand } from '../../../../src/core/claim-queue.ts'
import type { Row } from '../../../../src/stores/sql/row.ts'
import { load } from '../../../../src/stores/sql/row.ts'
import { compute } from '../../../../src/stores/sql/step.ts'

const NOW = 1_795_032_920_016_814
const [OVER, LIVE] = [NOW - 1_000_000, NOW + 1_000_000]

interface Ends {
  /** In the row's own columns. */
  readonly first: number
  /** In its queue. */
  readonly second: number
}

/** Two permits of three are held. */
function rowOf({ first, second }: Ends): Row {
  const held = { owner: 'test', weight: 1, tokens: 1 }
  const queue = { holders: [{ ...held, id: 's.2', token: 2, expires: second }], waiters: [], withdrawn: {} }
  return {
    ...held,
    name: 'a',
    version: 7,
    capacity: 3,
    fence: 2,
    waiting: 0,
    claim: 's.1',
    token: 1,
    expires: first,
    queue: JSON.stringify(queue),
    now: NOW,
  }
}

const TTLS = [1, 50, 51, 5000]

const commandsOf = (id: string, ttl: number): QueueCommand[] => {
  const asked = { name: 'a', id, ttl, patience: 5000 }
  const claim = { ...asked, owner: 'test', weight: 1, capacity: 3 }
  return [
    { kind: 'renew', request: { ...asked, tokens: 0 } },
    { kind: 'renew', request: { ...asked, tokens: 4 } },
    { kind: 'claim', request: { ...claim, tokens: 1, whenBusy: 'queue' } },
    { kind: 'claim', request: { ...claim, tokens: 1, whenBusy: 'try' } },
  ]
}

describe('a step over a row', () => {
  const cases = [OVER, LIVE].flatMap((first) =>
    [OVER, LIVE].flatMap((second) =>
      [false, true].flatMap((refused) =>
        TTLS.flatMap((ttl) =>
          ['s.1', 's.2', 's.3'].flatMap((id) =>
            commandsOf(id, ttl).map((command) => ({ ends: { first, second }, refused, id, ttl, command })),
          ),
        ),
      ),
    ),
  )

  it('writes what it answers: whoever is told that he holds has a lease of his ttl there', () => {
    let told = 0
    for (const { ends, refused, id, ttl, command } of cases) {
      const row = rowOf(ends)
      const { answers, next } = compute(row, [command], 1, refused)
      const [answer] = answers
      if (!('kind' in answer) || !['held', 'renewed'].includes(answer.kind)) continue
      told += 1
      const holder = load({ ...row, ...next }, 1).state.holders.get(id)
      expect({ command, refused, ends, until: holder?.expiresAt }).toEqual({
        command,
        refused,
        ends,
        until: NOW / 1000 + ttl,
      })
    }
    expect(told).toBeGreaterThan(100)
  })

  it('leaves claims that are over as they are, when others are not to end them', () => {
    const row = rowOf({ first: OVER, second: OVER })
    const [, , , claim] = commandsOf('s.3', 5000)
    if (claim === undefined) throw new Error('there is no such command')
    const { next, effects } = compute(row, [claim], 1, true)
    const { holders } = load({ ...row, ...next }, 1).state
    expect(['s.1', 's.2'].map((id) => holders.get(id)?.expiresAt)).toEqual([OVER / 1000, OVER / 1000])
    expect(effects.ended).toEqual([])
  })
})
