import { describe, expect, it } from 'vitest'

import {
  checkAbortLatency,
  checkBelief,
  checkFifo,
  checkHolderAdmitted,
  checkTokenOrder,
  gaveUpOf,
  holdsOf,
  Recorder,
} from '../../../src/testkit/index.ts'
import type { HistoryEvent } from '../../../src/testkit/index.ts'

/** A clock that stands still until it is told the time. */
function stage() {
  let now = 0n
  const events: HistoryEvent[] = []
  const at = (time: number): void => void (now = BigInt(time))
  const recorder = (process: string): Recorder =>
    new Recorder(process, { now: () => now, onEvent: (event) => void events.push(event) })
  return { events, at, recorder }
}

const lease = (token: number, ms = 1) => ({ token: BigInt(token), remaining: () => ms })

describe('Planted: a history that is wrong, and was once taken for right', () => {
  const permits = { weight: 1, capacity: 3 }

  it("a semaphore's tokens go back, although the later one was a claim of its own", () => {
    const { events, at, recorder } = stage()
    const [a, b] = [recorder('a'), recorder('b')]
    at(10)
    const first = a.acquire('gpu', permits)
    at(20)
    first.acquired(lease(50))
    at(30)
    const second = b.acquire('gpu', permits)
    at(40)
    second.acquired(lease(49))
    const [found, ...rest] = checkTokenOrder(holdsOf(events))
    expect(found?.message).toContain('b#1 of "gpu" (token 49) came after a#1 of "gpu" (token 50)')
    expect(rest).toEqual([])
  })

  it('is not said of a process that may have handed a permit on, with a token from before', () => {
    const { events, at, recorder } = stage()
    const [a, b] = [recorder('a'), recorder('b')]
    at(10)
    const one = a.acquire('gpu', permits)
    one.acquired(lease(50))
    at(20)
    b.acquire('gpu', permits).acquired(lease(70))
    at(30)
    // While the first is still held, and after a wait that was given up: both may pass on what was granted before.
    a.acquire('gpu', permits).acquired(lease(51))
    at(40)
    b.acquire('gpu', permits).failed()
    at(50)
    b.acquire('gpu', permits).acquired(lease(71))
    expect(checkTokenOrder(holdsOf(events))).toEqual([])
  })

  it('a lease says that it is held while its release is under way', () => {
    const { events, at, recorder } = stage()
    const story = recorder('a').acquire('seat')
    story.acquired(lease(1, 900))
    at(10)
    story.check(lease(1, 900))
    at(20)
    story.releasing()
    expect(checkBelief(events)).toEqual([])
    at(35)
    story.check(lease(1, 900))
    at(50)
    story.released('released')
    expect(checkBelief(events)[0]?.message).toContain('said that it is held after its release was called')
  })

  it('a waiter is passed by forty and gives up', () => {
    const { events, at, recorder } = stage()
    const poor = recorder('poor').acquire('seat')
    at(1)
    poor.queued()
    for (let turn = 0; turn < 40; turn += 1) {
      at(10 + turn * 10)
      const other = recorder(`other ${turn}`).acquire('seat')
      other.acquired(lease(100 + turn))
      at(15 + turn * 10)
      other.releasing()
      other.released('released')
    }
    at(1000)
    poor.failed()
    const gaveUp = gaveUpOf(events)
    expect(checkFifo(holdsOf(events), 0, gaveUp)).toMatchObject({
      maxBypass: 40,
      violations: [{ message: '40 that came later went before poor#1 of "seat", which gave up' }],
    })
    expect(checkFifo(holdsOf(events), 40, gaveUp).violations).toEqual([])
  })

  it('a signal comes 900 ms late, and a standstill just before it is no excuse', () => {
    const loss = { process: 'p', name: 'n', token: 1n, validUntil: 100, abortedAt: 1011 }
    const standstills = [{ process: 'p', from: 1000, to: 1010 }]
    expect(checkAbortLatency([loss], { standstills })[0]?.message).toContain('aborted 911 ms after its end')
    const through = [
      { process: 'p', from: 90, to: 500 },
      { process: 'p', from: 502, to: 1009 },
    ]
    expect(checkAbortLatency([loss], { standstills: through })).toEqual([])
  })

  it('a signal comes late, and many short standstills are no excuse for the time between them', () => {
    const loss = { process: 'p', name: 'n', token: 1n, validUntil: 100, abortedAt: 1000 }
    const standstills = Array.from({ length: 90 }, (_, index) => ({
      process: 'p',
      from: 104 + index * 10,
      to: 109 + index * 10,
    }))
    expect(checkAbortLatency([loss], { standstills })[0]?.message).toContain('ms after its end')
  })

  it('a resource refuses whoever holds the lock: the tokens went back', () => {
    const holder = { process: 'b', op: 1, name: 'seat', weight: 1, capacity: 1, token: 7n, laterTokens: [] }
    const hold = { ...holder, invoked: 5n, queued: undefined, from: 10n, to: 90n }
    const asked = { name: 'seat', client: 'b', token: 7n }
    expect(checkHolderAdmitted([hold], [{ ...asked, at: 20n, accepted: true }])).toEqual([])
    expect(checkHolderAdmitted([hold], [{ ...asked, at: 95n, accepted: false }])).toEqual([])
    expect(checkHolderAdmitted([hold], [{ ...asked, at: 20n, accepted: false }])).toHaveLength(1)
    const later = { ...hold, process: 'c', token: 9n, from: 15n }
    expect(checkHolderAdmitted([hold, later], [{ ...asked, at: 20n, accepted: false }])).toEqual([])
    const [strange] = checkHolderAdmitted([hold], [{ ...asked, token: 8n, at: 20n, accepted: true }])
    expect(strange?.message).toContain('which it was never given')
  })
})
