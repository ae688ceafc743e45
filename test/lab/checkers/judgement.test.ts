import { describe, expect, it } from 'vitest'

import { isEvidence, jsonPieces, judgeEvidence, nemesis, toJson } from '../../../src/lab/live/index.ts'
import type { Evidence } from '../../../src/lab/live/index.ts'
import type { FaultRecord, Verdict } from '../../../src/lab/record.ts'
import { pileOf } from '../../../src/lab/report/tally.ts'
import { Recorder } from '../../../src/testkit/index.ts'
import type { HistoryEvent, Story } from '../../../src/testkit/index.ts'
import { ALL } from '../../../src/core/contract.ts'
import { Random } from '../../../src/testkit/random.ts'
import { Script } from './evidence.ts'

const facts = (kind: string): Evidence['settings']['nemeses'][number] => {
  const found = nemesis(kind)
  if (found === undefined) throw new Error(`there is no fault "${kind}"`)
  return found
}

const server = { kind: 'server', what: 'the server is hurt by a command', row: 'storeRestart' } as const

const verdict = (evidence: Evidence, check: string): Verdict => {
  const found = judgeEvidence(evidence).verdicts.find((one) => one.check === check)
  if (found === undefined) throw new Error(`"${check}" was not checked`)
  return found
}

const unexpected = (evidence: Evidence): string[] =>
  judgeEvidence(evidence)
    .verdicts.filter((one) => pileOf(one) === 'unexpected')
    .map(({ check }) => check)

describe('A run that is as it should be', () => {
  it('is found to be so', () => {
    const script = new Script()
    script.turns(20, 20)
    expect(unexpected(script.evidence([facts('none')]))).toEqual([])
  })
})

describe('Outside of the windows of its faults', () => {
  /** Two hold at once, at this time; a command that was to hurt the server ran at 5 s. */
  const overlapAt = (at: number): Evidence => {
    const script = new Script()
    script.turns(10, 20)
    script.section('a', at - 5, at, at + 30)
    script.section('b', at - 5, at + 10, at + 40)
    script.turns(10, 20_000)
    script.faults.push({ at: 5000, until: 5500, kind: 'server', target: 'the server', detail: 'true' })
    return script.evidence([server])
  }

  it('nothing may break: neither before a fault nor when it has worn off', () => {
    for (const at of [1000, 4900, 7100]) {
      const { expected, seen, why } = verdict(overlapAt(at), 'exclusivity')
      expect({ expected, seen }).toEqual({ expected: 'holds', seen: 'broke' })
      expect(why).toContain('Outside of every fault: ')
    }
  })

  it('and inside of one, what the table says', () => {
    expect(verdict(overlapAt(5600), 'exclusivity')).toMatchObject({ expected: 'may break', seen: 'broke' })
    expect(unexpected(overlapAt(5600))).toEqual([])
  })

  it('no lease is lost, no call fails, and no lock is free for long', () => {
    const script = new Script()
    script.turns(10, 20)
    script.section('a', 210, 2000, 2020)
    const error = {
      client: 'a',
      call: 'acquire',
      from: 10n,
      at: 20n,
      code: 'STORE_UNAVAILABLE',
      message: 'no',
    }
    const lost = { process: 'a', op: 1, kind: 'lost', phase: 'ok', at: 50_000_000n, name: 'seat' } as const
    const evidence = script.evidence([facts('none')], { errors: [error] })
    const broken = { ...evidence, history: [...evidence.history, lost] }
    expect(unexpected(broken)).toEqual(['renewal', 'wake-ups', 'errors'])
    const cut = { at: 0, until: 1900, kind: 'cut', target: 'a' }
    const faults = { ...broken, faults: [cut] }
    expect(unexpected({ ...faults, settings: { ...faults.settings, nemeses: [facts('cut')] } })).toEqual([])
  })

  it('nothing is decided where the store took its time to answer the lab too', () => {
    const script = new Script()
    script.turns(10, 20)
    script.section('a', 210, 2000, 2020)
    const slow = { name: 'seat', from: 300_000_000n, to: 800_000_000n, holders: [], waiters: [] }
    const quick = { ...slow, to: 301_000_000n }
    const evidence = script.evidence([facts('none')], { looks: [quick, slow, quick] })
    expect(verdict({ ...evidence, looks: [] }, 'wake-ups')).toMatchObject({ seen: 'broke' })
    expect(verdict(evidence, 'wake-ups')).toMatchObject({ seen: 'unknown' })
    expect(verdict(evidence, 'wake-ups').why).toContain('too slow to say')
  })

  it('a store that is far away is given so many of its answers, and what it has no time for is not decided', () => {
    const seen = (check: string, answerMs: number): Verdict => {
      const script = new Script()
      script.turns(10, 20)
      // Asked for before the other one gave it back, at 221, and given at 1800.
      script.section('a', 210, 1800, 1820)
      script.section('b', 1830, 1840, 3000)
      const lost = { process: 'a', op: 1, kind: 'lost', phase: 'ok', at: 50_000_000n, name: 'seat' } as const
      const looks = [1, 2, 3].map((at) => {
        const from = BigInt(at) * 500_000_000n
        return { name: 'seat', from, to: from + BigInt(answerMs * 1e6), holders: [], waiters: [] }
      })
      const evidence = script.evidence([facts('none')], { looks })
      return verdict({ ...evidence, history: [...evidence.history, lost] }, check)
    }
    expect(seen('wake-ups', 5).seen).toBe('broke')
    expect(seen('wake-ups', 80).seen).toBe('held')
    expect(seen('renewal', 20).seen).toBe('broke')
    expect(seen('renewal', 80).seen).toBe('unknown')
  })

  it('a store that is far away and renews nothing is not decided, though no section outlived its ttl', () => {
    const script = new Script()
    script.turns(10, 20)
    const lost = { process: 'a', op: 1, kind: 'lost', phase: 'ok', at: 50_000_000n, name: 'seat' } as const
    const looks = [1, 2, 3].map((at) => {
      const from = BigInt(at) * 50_000_000n
      return { name: 'seat', from, to: from + 80_000_000n, holders: [], waiters: [] }
    })
    const evidence = script.evidence([facts('none')], { looks })
    expect(verdict(evidence, 'renewal')).toMatchObject({ seen: 'not run' })
    const renewsNothing = { ...evidence, history: [...evidence.history, lost] }
    expect(verdict(renewsNothing, 'renewal')).toMatchObject({ seen: 'unknown' })
    expect(verdict(renewsNothing, 'renewal').why).toContain('a lost its lease on "seat"')
  })

  it('an error that is none of the library is unexpected at any time', () => {
    const script = new Script()
    script.turns(10, 20)
    script.faults.push({ at: 0, until: 200, kind: 'cut', target: 'a' })
    const errors = [{ client: 'a', call: 'acquire', from: 10n, at: 20n, message: 'TypeError: x' }]
    expect(unexpected(script.evidence([facts('cut')], { errors }))).toEqual(['errors'])
  })
})

describe('A fault that did not last as long as it says', () => {
  const pausedFor = (ms: number): Evidence => {
    const script = new Script()
    const at = script.turns(10, 20)
    script.faults.push({ at, until: at + ms, kind: 'pause', target: 'a', least: 1000 })
    return script.evidence([facts('pause'), facts('kill')], {
      faults: [...script.faults, { at, kind: 'kill', target: 'b' }],
    })
  }

  it('was not run, and nothing is expected of it', () => {
    expect(verdict(pausedFor(16), 'faults')).toMatchObject({
      seen: 'not run',
      why: 'pause: it lasted 16 of 1000 ms',
    })
    expect(verdict(pausedFor(16), 'lost update')).toMatchObject({ expected: 'holds' })
    expect(verdict(pausedFor(1001), 'faults')).toMatchObject({ seen: 'held' })
    expect(verdict(pausedFor(1001), 'lost update')).toMatchObject({ expected: 'may break' })
  })

  it('leaves a run undecided that had no other', () => {
    const evidence = pausedFor(28)
    const alone = { ...evidence, settings: { ...evidence.settings, nemeses: [facts('pause')] } }
    expect(verdict(alone, 'faults')).toMatchObject({ seen: 'unknown' })
  })
})

describe('The fenced resource', () => {
  it('shows tokens that go back: whoever holds the lock is refused', () => {
    const random = new Random(7)
    let found = 0
    for (let stream = 0; stream < 500; stream += 1) {
      const script = new Script()
      for (let turn = 0; turn < 6; turn += 1)
        script.section(`c${turn}`, turn * 20, turn * 20 + 5, turn * 20 + 15, BigInt(1 + random.below(1000)))
      if (verdict(script.evidence([facts('none')]), 'fenced resource').seen === 'broke') found += 1
    }
    // All but those that happen to grow: one in 720.
    expect(found).toBeGreaterThan(490)
  })
})

describe('A client', () => {
  it('that ended by itself, and one whose close did not end, are named', () => {
    const script = new Script()
    script.turns(10, 20)
    const evidence = script.evidence([facts('none')], {
      clients: [
        { label: 'a', startedAt: 0, exit: { at: 100, how: 'exit code 1', planned: false } },
        {
          label: 'b',
          startedAt: 0,
          closing: { from: 300 },
          exit: { at: 4000, how: 'SIGKILL', planned: true },
        },
      ],
    })
    expect(verdict(evidence, 'clients').why).toBe('a ended by itself: exit code 1')
    expect(verdict(evidence, 'closing').why).toBe('b: close() had not ended after 3700 ms')
  })

  it('whose release was confirmed holds nothing at the store any more', () => {
    const script = new Script()
    script.turns(10, 20)
    const at = (ms: number): bigint => BigInt(ms * 1e6)
    const look = { name: 'seat', holders: ['a'], waiters: [] }
    const held = script.evidence([facts('none')], { looks: [{ ...look, from: at(25), to: at(26) }] })
    expect(verdict(held, 'leftovers').seen).toBe('held')
    const left = script.evidence([facts('none')], { looks: [{ ...look, from: at(400), to: at(401) }] })
    expect(verdict(left, 'leftovers').why).toMatch(
      /^"seat" is still held by a \d+ ms after its release was confirmed$/,
    )
  })

  it('has none that belongs to a wait that was given up long ago, of which no release was confirmed', () => {
    const script = new Script()
    script.turns(10, 20)
    const at = (ms: number): bigint => BigInt(ms * 1e6)
    const wait = { process: 'a', op: 100, name: 'seat', kind: 'acquire' } as const
    const history: readonly HistoryEvent[] = [
      { ...wait, phase: 'invoke', at: at(300), weight: 1, capacity: 1 },
      { ...wait, phase: 'fail', at: at(340) },
    ]
    const looks = [{ name: 'seat', holders: ['a'], waiters: [], from: at(1500), to: at(1501) }]
    const evidence = script.evidence([facts('none')], { looks, endedAt: 2000 })
    expect(verdict({ ...evidence, history: [...evidence.history, ...history] }, 'leftovers').why).toBe(
      '"seat" is still held by a 160 ms after its last call had to be gone',
    )
  })
})

describe('Throughput', () => {
  it('collapses when most hand-overs take far longer than the store needs to answer', () => {
    const script = new Script()
    for (let turn = 0; turn < 20; turn += 1)
      script.section(turn % 2 === 0 ? 'a' : 'b', turn * 420 + 1, turn * 420 + 400, turn * 420 + 420)
    const looks = Array.from({ length: 20 }, (_, index) => ({
      name: 'seat',
      from: BigInt(index) * 1000n,
      to: BigInt(index) * 1000n + 2_000_000n,
      holders: [],
      waiters: [],
    }))
    expect(unexpected(script.evidence([facts('none')], { looks }))).toEqual(['throughput'])
  })
})

interface Pace {
  readonly clients?: readonly string[]
  readonly every?: number
  readonly waited?: number
}

describe('A lock that several may hold', () => {
  const ms = (time: number): bigint => BigInt(time) * 1_000_000n
  const permits = { weight: 1, capacity: 3 }
  /** Calls of clients in turn, every one of them asked for while others wait or hold. */
  const played = (
    turns: number,
    heldFor: number,
    { clients = ['a', 'b'], every = 50, waited = 40 }: Pace = {},
  ): Evidence => {
    const script = new Script()
    const evidence = script.evidence([facts('none')])
    const history = Array.from({ length: turns }, (_, turn) => {
      const call = { process: clients[turn % clients.length] ?? 'a', op: turn, name: 'seat' }
      const at = turn * every
      const token = BigInt(turn + 1)
      return [
        { ...call, kind: 'acquire', phase: 'invoke', at: ms(at), ...permits } as const,
        {
          ...call,
          kind: 'acquire',
          phase: 'ok',
          at: ms(at + waited),
          token,
          validUntil: ms(at + 10_000),
        } as const,
        { ...call, kind: 'release', phase: 'invoke', at: ms(at + waited + heldFor) } as const,
        { ...call, kind: 'release', phase: 'ok', at: ms(at + waited + 1 + heldFor) } as const,
      ]
    }).flat()
    const names = [{ name: 'seat', kind: 'semaphore', capacity: 3 } as const]
    return { ...evidence, history, settings: { ...evidence.settings, names } }
  }

  it('is held by several now and then, where there is room', () => {
    expect(verdict(played(20, 30), 'throughput').why).toContain('never held by two at once')
    expect(unexpected(played(20, 70))).not.toContain('throughput')
  })

  it('is held by as many as there is room for', () => {
    const three = { clients: ['a', 'b', 'c'], every: 25 }
    const two = played(50, 28, { ...three, waited: 30 })
    expect(verdict(two, 'throughput').why).toContain('never held by 3 at once, although there was room')
    expect(unexpected(played(50, 60, { ...three, waited: 5 }))).not.toContain('throughput')
    // Of so few nobody can say.
    expect(unexpected(played(20, 28, { ...three, waited: 30 }))).not.toContain('throughput')
  })

  it('is given to whoever waits while there is room', () => {
    const evidence = played(4, 5000)
    const late = { process: 'c', op: 1, name: 'seat', ...permits }
    const history = [
      ...evidence.history.filter(({ op }) => op < 2),
      { ...late, kind: 'acquire', phase: 'invoke', at: ms(200) } as const,
      { ...late, kind: 'acquire', phase: 'ok', at: ms(3000), token: 9n, validUntil: ms(4000) } as const,
    ]
    expect(verdict({ ...evidence, history }, 'wake-ups').why).toContain('had room for everybody for 2800 ms')
  })
})

describe('A try', () => {
  const ms = (time: number): bigint => BigInt(time) * 1_000_000n
  const refusedAt = (at: number): Evidence => {
    const script = new Script()
    script.turns(10, 20)
    const asked = { process: 'c', op: 1, name: 'seat', kind: 'acquire' } as const
    const call = [
      { ...asked, phase: 'invoke', at: ms(at), weight: 1, capacity: 1 } as const,
      { ...asked, phase: 'fail', at: ms(at + 1) } as const,
    ]
    const refusal = { client: 'c', name: 'seat', weight: 1, capacity: 1, from: ms(at), at: ms(at + 1) }
    const evidence = script.evidence([facts('none')], { refusals: [refusal] })
    return { ...evidence, history: [...evidence.history, ...call] }
  }

  it('is refused only where somebody is in its way', () => {
    expect(verdict(refusedAt(100), 'refusals').seen).toBe('held')
    expect(verdict(refusedAt(600), 'refusals').why).toContain('although nobody was in its way')
    expect(verdict({ ...refusedAt(600), refusals: [] }, 'refusals').seen).toBe('not run')
  })
})

describe('The store', () => {
  it('shows whoever holds', () => {
    const script = new Script()
    script.turns(10, 20)
    const look = { name: 'seat', from: 28_000_000n, to: 29_000_000n, waiters: [] }
    const shown = (holders: readonly string[]): Evidence =>
      script.evidence([facts('none')], { looks: [{ ...look, holders }] })
    expect(verdict(shown(['a']), 'inspection').seen).toBe('held')
    expect(verdict(shown([]), 'inspection').why).toBe('the store does not show that a holds "seat"')
  })
})

describe('A writer that goes on as a reader', () => {
  it('is shown as a reader, once that was confirmed', () => {
    const ms = (time: number): bigint => BigInt(time) * 1_000_000n
    const script = new Script()
    script.section('a', 0, 10, 100)
    const call = { process: 'a', op: 1, name: 'seat', kind: 'downgrade' } as const
    const downgrade = [
      { ...call, phase: 'invoke', at: ms(20) } as const,
      { ...call, phase: 'ok', at: ms(30) } as const,
    ]
    const seen = (at: number, writers: readonly string[]): Verdict => {
      const look = { name: 'seat', from: ms(at), to: ms(at + 5), holders: ['a'], waiters: [], writers }
      const evidence = script.evidence([facts('none')], { looks: [look] })
      return verdict({ ...evidence, history: [...evidence.history, ...downgrade] }, 'inspection')
    }
    expect(seen(40, []).seen).toBe('held')
    expect(seen(25, ['a']).seen).toBe('held')
    expect(seen(40, ['a']).why).toContain('as the writer of "seat" after its downgrade was confirmed')
  })
})

describe('Who was killed', () => {
  /** It held from 1 s on, with a lease that ends at 2 s; somebody else waits from then on, and is given it at this time. */
  const inherited = (given: number, beside?: FaultRecord): Evidence => {
    const script = new Script()
    script.turns(10, 20)
    script.section('a', 990, 1000, 1001)
    script.section('b', 1010, given, given + 20)
    script.turns(10, given + 100)
    script.faults.push({ at: 1100, kind: 'kill', target: 'a' }, ...(beside === undefined ? [] : [beside]))
    const evidence = script.evidence([facts('kill')])
    const dead = evidence.history.findLast(({ process, at }) => process === 'a' && at < 1_050_000_000n)?.op
    const history = evidence.history.filter(
      ({ process, op, kind }) => process !== 'a' || op !== dead || kind === 'acquire',
    )
    return { ...evidence, history }
  }

  it('keeps a lock until its lease has ended, and not much longer', () => {
    expect(unexpected(inherited(2300))).toEqual([])
    expect(verdict(inherited(4500), 'liveness').why).toMatch(
      /^"seat" was given to nobody for 2500 ms after the lease of a, which was killed, had ended/,
    )
  })

  it('and where the way to the store was hurt as well, nobody can say', () => {
    const cut = { at: 1200, kind: 'cut', target: 'b' }
    expect(verdict(inherited(4500, cut), 'liveness').seen).toBe('held')
  })
})

describe('Who was given nothing in the end', () => {
  it('is told of, unless most answers of the store were late then: one that was excuses nothing', () => {
    const script = new Script()
    const healedAt = script.turns(20, 20)
    const message = 'a was given nothing in the 9000 ms after the last fault'
    const looks = (...took: readonly number[]): Evidence['looks'] =>
      took.map((ms, index) => {
        const from = BigInt(healedAt + 400 * index) * 1_000_000n
        return { name: 'seat', from, to: from + BigInt(ms) * 1_000_000n, holders: [], waiters: [] }
      })
    const stuck = [{ check: 'liveness', message, at: healedAt + 9000 }]
    const seen = (...took: readonly number[]): Verdict =>
      verdict(script.evidence([facts('none')], { healedAt, stuck, looks: looks(...took) }), 'liveness')
    expect(seen()).toMatchObject({ seen: 'broke', why: message })
    expect(seen(2, 390, 3)).toMatchObject({ seen: 'broke', why: message })
    // Of a ttl of a second: too far away for a turn, though none of it is late by itself.
    expect(seen(60, 61, 3)).toMatchObject({
      seen: 'unknown',
      why: `the machine or the store was too slow to say: ${message}`,
    })
  })
})

describe('A fault that did not come about', () => {
  it('is no success because nothing was to happen as well', () => {
    const script = new Script()
    script.turns(20, 20)
    const missed = [{ kind: 'kill', why: 'nobody was there' }]
    const of = (...kinds: readonly string[]): Verdict =>
      verdict(script.evidence(kinds.map(facts), { missed }), 'faults')
    expect(of('kill').seen).toBe('unknown')
    expect(of('none', 'kill')).toMatchObject({ seen: 'unknown', why: 'kill: nobody was there' })
  })
})

describe('A signal', () => {
  it('that had not aborted when its lease was given back is named', () => {
    const script = new Script()
    script.turns(10, 20)
    const evidence = script.evidence([facts('none')])
    const late = evidence.history.map((event) =>
      event.process === 'b' && event.op === 1 && event.kind === 'release'
        ? { ...event, at: event.at + 2_000_000_000n }
        : event,
    )
    expect(verdict({ ...evidence, history: late }, 'belief').why).toContain('had not aborted')
  })
})

describe('Renewal', () => {
  it('was looked at only where a section of each kind of lock outlived its ttl', () => {
    const script = new Script()
    const end = script.turns(10, 20)
    script.section('a', end, end + 10, end + 600)
    const evidence = script.evidence([facts('none')], {})
    const renewal = (ttl: number, ...more: Evidence['settings']['names']): Verdict =>
      verdict({ ...evidence, settings: { ...evidence.settings, ttl, names: [...seats, ...more] } }, 'renewal')
    const { names: seats } = evidence.settings
    expect(renewal(500).seen).toBe('held')
    expect(renewal(700)).toMatchObject({
      seen: 'not run',
      why: 'no section outlived its ttl while no fault was there',
    })
    const permits = { name: 'seat:permits', kind: 'semaphore', capacity: 3 } as const
    expect(renewal(500, permits)).toMatchObject({
      seen: 'not run',
      why: 'no section of a semaphore outlived its ttl while no fault was there',
    })
  })
})

describe('Evidence without anything in it', () => {
  it('is no success', () => {
    const nothing = new Script().evidence([facts('none')])
    expect(unexpected(nothing)).toContain('liveness')
    const seen = judgeEvidence(nothing)
      .verdicts.filter((one) => one.seen === 'held')
      .map(({ check }) => check)
    for (const check of ['exclusivity', 'refusals', 'inspection', 'renewal', 'wake-ups', 'throughput'])
      expect(seen).not.toContain(check)
  })
})

describe('What stands in the way of one is no excuse for another', () => {
  const ms = (at: number): bigint => BigInt(at) * 1_000_000n

  it('whoever was not killed has no errors, and loses nothing', () => {
    const script = new Script()
    script.turns(10, 20)
    script.faults.push({ at: 100, kind: 'kill', target: 'a' })
    const failed = (client: string) => {
      const error = { client, call: 'acquire', from: ms(500), at: ms(510), code: 'STORE_UNAVAILABLE' }
      const lost = { process: client, op: 1, kind: 'lost', phase: 'ok', at: ms(600), name: 'seat' } as const
      const evidence = script.evidence([facts('kill')], { errors: [{ ...error, message: 'no' }] })
      return unexpected({ ...evidence, history: [...evidence.history, lost] })
    }
    expect(failed('a')).toEqual([])
    expect(failed('b')).toEqual(['renewal', 'errors'])
  })

  it('a signal that comes late is excused by what its own process had no processor for', () => {
    const script = new Script()
    script.turns(12, 20)
    script.section('a', 300, 310, 2500)
    // Good for 300 ms when it was last looked at, and given back two seconds later without having been told.
    const history = script.history
      .filter(({ kind, at }) => kind !== 'check' || at < ms(1000))
      .map((one) =>
        one.validUntil === undefined || one.at < ms(310) ? one : { ...one, validUntil: ms(610) },
      )
    const judged = (of?: string) => {
      const stalls = [{ from: 600, to: 2400, ...(of !== undefined && { of }) }]
      return verdict({ ...script.evidence([facts('none')], { stalls }), history }, 'belief').seen
    }
    expect([judged('a'), judged(), judged('b'), judged('the lab')]).toEqual([
      'held',
      'held',
      'broke',
      'broke',
    ])
  })

  it('a machine that stood still once did so once, however many tell of it', () => {
    const script = new Script()
    script.turns(10, 20)
    script.section('a', 240, 4000, 4020)
    const stalls = Array.from({ length: 8 }, () => ({ from: 300, to: 800 }))
    expect(verdict(script.evidence([facts('none')], { stalls }), 'wake-ups').why).toContain('was free for 3')
  })

  it('a lock is free when the store has confirmed that it is, and not when its release was called', () => {
    const script = new Script()
    const at = script.turns(10, 20)
    script.section('b', at - 15, at + 1500, at + 1520)
    const told = (answered: number, phase: 'ok' | 'info' = 'ok'): Verdict => {
      const evidence = script.evidence([facts('none')])
      const last = evidence.history.findLastIndex(
        ({ kind, phase: which, at: when }) =>
          kind === 'release' && which === 'ok' && when < BigInt(at * 1_000_000),
      )
      const release = { ...(evidence.history[last] as HistoryEvent), phase, at: BigInt(answered * 1_000_000) }
      return verdict({ ...evidence, history: evidence.history.with(last, release) }, 'wake-ups')
    }
    expect(told(at)).toMatchObject({ seen: 'broke' })
    expect(told(at + 300).why).toContain('was free for 1200 ms')
    expect(told(at + 700)).toMatchObject({ seen: 'held' })
    expect(told(at, 'info')).toMatchObject({ seen: 'held' })
  })

  it('a release that was once not answered does not hide what is left behind later', () => {
    const script = new Script()
    const at = script.turns(10, 20)
    const looks = [{ name: 'seat', from: ms(at + 5000), to: ms(at + 5001), holders: ['a'], waiters: [] }]
    const evidence = script.evidence([facts('kill')], { looks, endedAt: at + 6000 })
    const first = evidence.history.findIndex(({ kind, phase }) => kind === 'release' && phase === 'ok')
    const history = evidence.history.with(first, {
      ...(evidence.history[first] as HistoryEvent),
      phase: 'info',
    })
    expect(verdict({ ...evidence, history }, 'leftovers').why).toContain('is still held by a')
    // Its answer may have been lost; until it has run out, it may be there.
    const soon = looks.map((look) => ({ ...look, from: ms(at + 700), to: ms(at + 701) }))
    const last = evidence.history.findLastIndex(
      ({ process, kind, phase }) => process === 'a' && kind === 'release' && phase === 'ok',
    )
    const late = evidence.history.with(last, { ...(evidence.history[last] as HistoryEvent), phase: 'info' })
    expect(verdict({ ...evidence, looks: soon, history: late }, 'leftovers').seen).toBe('held')
  })
})

describe('A call that ended in vain', () => {
  it('was a release that does not know what became of it, though nothing is in the way', () => {
    const script = new Script()
    script.turns(20, 20)
    const evidence = script.evidence([facts('none')])
    const history = evidence.history.map((event) =>
      event.kind === 'release' && event.phase === 'ok' ? { ...event, phase: 'info' as const } : event,
    )
    expect(unexpected({ ...evidence, history })).toEqual(['errors'])
  })

  it('was a wait for what nobody had: one may be unlucky, three are not', () => {
    const waits = (count: number, long: number, took = 0): Verdict => {
      const script = new Script()
      let from = script.turns(10, 20)
      for (; took > 0 && from < 2000; from += 100) script.section('a', from, from + took, from + took + 20)
      const history = Array.from({ length: count }, (_, op): HistoryEvent[] => {
        const asked = from + op * 3000 + 2000
        const call = { process: 'a', op: 100 + op, name: 'seat', kind: 'acquire' } as const
        const stamp = (at: number): bigint => BigInt(Math.round(at * 1e6))
        return [
          { ...call, phase: 'invoke', at: stamp(asked), weight: 1, capacity: 1 },
          { ...call, phase: 'fail', at: stamp(asked + long) },
        ]
      }).flat()
      const evidence = script.evidence([facts('none')], { endedAt: 100_000 })
      return verdict({ ...evidence, history: [...evidence.history, ...history] }, 'refusals')
    }
    expect(waits(3, 30)).toMatchObject({ seen: 'broke' })
    expect(waits(3, 30).why).toContain('waited for "seat" in vain although nobody was in its way')
    expect(waits(2, 30).seen).toBe('not run')
    expect(waits(3, 20).seen).toBe('not run')
    // Where what is free takes a while to be given, it was not long enough.
    expect(waits(3, 30, 40).seen).toBe('not run')
    expect(waits(3, 50, 40).seen).toBe('broke')
  })

  it('leaves nothing to be said of writes that nobody made', () => {
    const script = new Script()
    script.turns(20, 20)
    const evidence = script.evidence([facts('none')], { registers: [] })
    for (const check of ['lost update', 'fenced resource', 'lost update, fenced'])
      expect(verdict(evidence, check)).toMatchObject({ seen: 'not run', why: 'nobody ever wrote' })
  })
})

describe('The order of those who stood in line', () => {
  const ms = (at: number): bigint => BigInt(at) * 1_000_000n
  /** `a` has all of it; `b` stands in line, and `c` comes later. `c` is given it with the smaller token. */
  const passed = (weight: number, capacity: number, lookAt?: number): Verdict => {
    let now = 0n
    const history: HistoryEvent[] = []
    const recorder = (process: string): Recorder =>
      new Recorder(process, { now: () => now, onEvent: (event) => void history.push(event) })
    const at = (time: number, act: () => void): void => {
      now = ms(time)
      act()
    }
    const lease = (token: bigint) => ({ token, remaining: () => 1000 })
    const give = (story: Story): void => {
      story.releasing()
      story.released('released')
    }
    const [all, first, later] = [recorder('a'), recorder('b'), recorder('c')]
    const held = all.acquire('seat', { weight: capacity, capacity })
    at(1, () => held.acquired(lease(1n)))
    now = ms(2)
    const waits = first.acquire('seat', { weight, capacity })
    at(5, () => waits.queued())
    now = ms(6)
    const comes = later.acquire('seat', { weight, capacity })
    at(20, () => give(held))
    at(23, () => comes.acquired(lease(50n)))
    at(40, () => give(comes))
    at(41, () => waits.acquired(lease(51n)))
    at(60, () => give(waits))
    const look = {
      name: 'seat',
      from: ms(lookAt ?? 0),
      to: ms((lookAt ?? 0) + 1),
      holders: [],
      waiters: ['b'],
    }
    const script = new Script()
    const evidence = script.evidence([facts('none')], { history, looks: lookAt === undefined ? [] : [look] })
    const names = [{ name: 'seat', kind: 'semaphore', capacity }] as const
    return verdict({ ...evidence, settings: { ...evidence.settings, names } }, 'fifo')
  }

  it('is told by their tokens where one excludes the other', () => {
    expect(passed(1, 1)).toMatchObject({ seen: 'broke' })
    expect(passed(1, 1).why).toContain('1 that came later went before b')
    expect(passed(2, 3)).toMatchObject({ seen: 'broke' })
  })

  it('is not, where one release let both of them in: tokens say who confirmed first', () => {
    expect(passed(1, 2)).toMatchObject({ seen: 'held' })
    expect(passed(1, ALL)).toMatchObject({ seen: 'held' })
  })

  it('and then only what the store showed counts: one in line, when the other already had it', () => {
    for (const capacity of [2, ALL]) {
      expect(passed(1, capacity, 22)).toMatchObject({ seen: 'held' })
      expect(passed(1, capacity, 30)).toMatchObject({ seen: 'broke' })
    }
  })
})

describe('Evidence that was read from a file', () => {
  it('is known only if nothing is missing that is judged', () => {
    const script = new Script()
    script.turns(3, 20)
    const evidence = script.evidence([facts('none')])
    expect(isEvidence(evidence)).toBe(true)
    expect(isEvidence(JSON.parse(toJson(evidence)) as Evidence)).toBe(true)
    const { settings } = evidence
    for (const part of Object.keys(evidence)) {
      // A later version judges what an earlier one had not written down.
      if (part === 'refusals') continue
      expect({ part, known: isEvidence({ ...evidence, [part]: undefined }) }).toEqual({ part, known: false })
    }
    for (const part of Object.keys(settings)) {
      const without = { ...settings, [part]: undefined } as unknown as Evidence['settings']
      expect({ part, known: isEvidence({ ...evidence, settings: without }) }).toEqual({ part, known: false })
    }
  })
})

describe('A run of hours', () => {
  const ms = (at: number): bigint => BigInt(Math.round(at * 1e6))
  const CLIENTS = ['a', 'b', 'c']

  /** All who wait stand in line, a try is refused in each section, and the lab looks at each. */
  const played = (sections: number, answerMs: number): Evidence => {
    const script = new Script()
    const endedAt = script.turns(sections, 20, CLIENTS) + 100
    const history = script.history.flatMap((event): HistoryEvent[] =>
      event.kind === 'acquire' && event.phase === 'invoke'
        ? [event, { ...event, phase: 'queued', at: event.at + 1n }]
        : [event],
    )
    const times = Array.from({ length: sections }, (_, turn) => 20 + 22 * turn)
    const looks = times.map((at, turn) => {
      const holders = [CLIENTS[turn % CLIENTS.length] ?? '']
      return { name: 'seat', from: ms(at + 8), to: ms(at + 8 + answerMs), holders, waiters: [] }
    })
    const call = { client: 'd', name: 'seat', weight: 1, capacity: 1 } as const
    const refusals = times.map((at) => ({ ...call, from: ms(at + 5), at: ms(at + 6) }))
    // The machine was busy again and again.
    const stalls = times.map((at) => ({ from: at + 15, to: at + 17, of: 'a' }))
    return script.evidence([facts('none')], { history, endedAt, looks, refusals, stalls })
  }

  it('is written down in pieces, for all of it is longer than a text may be', () => {
    const records = [
      { id: 'live/x', seed: undefined, empty: [], evidence: played(10_000, 1) },
      { id: 'live/y' },
    ]
    const pieces = [...jsonPieces(records)]
    expect(pieces.join('')).toBe(toJson(records))
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(toJson(records).length / 4)
  })

  /** Of the processor: what else it does is no matter. */
  const cost = (evidence: Evidence): number => {
    const before = process.cpuUsage()
    judgeEvidence(evidence)
    const { user, system } = process.cpuUsage(before)
    return user + system
  }

  // Four times as long, it would take sixteen times as much if each were compared with all others.
  it.each([
    ['quick', 1],
    ['slow', 200],
  ])('is judged at a cost that grows as it does, the answers of the store being %s', (_, answerMs) => {
    const [short, long] = [played(3000, answerMs), played(12_000, answerMs)]
    cost(short)
    const cheapest = Math.min(cost(short), cost(short))
    expect(cost(long) / cheapest).toBeLessThan(10)
  })
})
