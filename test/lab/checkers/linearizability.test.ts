import { describe, expect, it } from 'vitest'

import { ALL } from '../../../src/core/contract.ts'
import {
  checkLinearizability,
  fencedMutex,
  holdsOf,
  operationsOf,
  ownedMutex,
  readWriteLock,
  Recorder,
  reentrantMutex,
  semaphore,
} from '../../../src/testkit/index.ts'
import type { Operation } from '../../../src/testkit/index.ts'

type Action = Operation['action']

/** A call of `owner` from one moment to another; null: it never returned. */
function call(
  action: Action,
  owner: string,
  [from, to]: readonly [number, number | null],
  rest: { readonly token?: number; readonly weight?: number; readonly capacity?: number } = {},
): Operation {
  const { token = 1, weight = 1, capacity = 1 } = rest
  const end = to === null ? undefined : BigInt(to)
  const common = { process: owner, name: 'n', action, owner, call: BigInt(from), end }
  return { ...common, token: BigInt(token), weight, capacity }
}

const take = (owner: string, time: readonly [number, number | null], token?: number): Operation =>
  call('acquire', owner, time, token === undefined ? {} : { token })
const give = (owner: string, time: readonly [number, number | null]): Operation =>
  call('release', owner, time)

describe('the search for an order of calls', () => {
  it('finds one where calls overlap, whatever the order in which they are listed', () => {
    const calls = [give('a', [5, 9]), take('b', [2, 8], 2), take('a', [0, 3], 1), give('b', [10, 12])]
    expect(checkLinearizability(calls, ownedMutex)).toMatchObject({ verdict: 'held', violations: [] })
    expect(checkLinearizability(calls, fencedMutex).verdict).toBe('held')
  })

  it('finds none where two have the lock at once, and says whose call fits nowhere', () => {
    const calls = [take('a', [0, 1], 1), take('b', [2, 3], 2), give('a', [4, 5])]
    const { verdict, violations } = checkLinearizability(calls, ownedMutex)
    expect(verdict).toBe('broke')
    expect(violations[0]).toMatchObject({ rule: 'linearizability' })
    expect(violations[0]?.message).toContain('acquire by b')
  })

  it('finds none where somebody gives back what another has', () => {
    expect(checkLinearizability([take('a', [0, 1]), give('b', [2, 3])], ownedMutex).verdict).toBe('broke')
  })

  it('lets a call that never returned have happened, or not', () => {
    const lost = [take('a', [0, 1], 1), give('a', [2, null]), take('b', [3, 4], 2)]
    expect(checkLinearizability(lost, fencedMutex).verdict).toBe('held')
    const never = [take('a', [0, 1], 1), give('a', [2, null])]
    expect(checkLinearizability(never, fencedMutex).verdict).toBe('held')
  })

  it('counts calls at the same moment as concurrent', () => {
    const calls = [take('a', [0, 1], 1), give('a', [2, 3]), take('b', [3, 3], 2)]
    expect(checkLinearizability(calls, ownedMutex).verdict).toBe('held')
  })

  it('looks at each name by itself', () => {
    const other = { ...take('b', [2, 3], 2), name: 'other' }
    expect(checkLinearizability([take('a', [0, 1], 1), other], ownedMutex).verdict).toBe('held')
  })

  it('says that it does not know, never that all is well, when it is given up', () => {
    const calls = [take('a', [0, 1], 1), give('a', [2, 3]), take('b', [4, 5], 2)]
    expect(checkLinearizability(calls, fencedMutex, { limit: 2 })).toMatchObject({ verdict: 'unknown' })
  })

  it('does not repeat itself: many calls at once are decided within its steps', () => {
    const calls = Array.from({ length: 60 }, (_, index) => [
      take(`p${index}`, [0, 1000], index + 1),
      give(`p${index}`, [0, 1000]),
    ]).flat()
    expect(checkLinearizability(calls, fencedMutex).verdict).toBe('held')
  })
})

describe('the models', () => {
  it('fenced: a token that does not grow fits nowhere', () => {
    const calls = [take('a', [0, 1], 5), give('a', [2, 3]), take('b', [4, 5], 5)]
    expect(checkLinearizability(calls, ownedMutex).verdict).toBe('held')
    expect(checkLinearizability(calls, fencedMutex).verdict).toBe('broke')
  })

  it('re-entrant: again with the same token, and given back as often', () => {
    const again = [take('a', [0, 1], 5), take('a', [2, 3], 5), give('a', [4, 5]), give('a', [6, 7])]
    expect(checkLinearizability([...again, take('b', [8, 9], 6)], reentrantMutex).verdict).toBe('held')
    expect(checkLinearizability([...again.slice(0, 3), take('b', [8, 9], 6)], reentrantMutex).verdict).toBe(
      'broke',
    )
    const anew = [take('a', [0, 1], 5), take('a', [2, 3], 6)]
    expect(checkLinearizability(anew, reentrantMutex).verdict).toBe('broke')
  })

  it('semaphore: as many permits as there are', () => {
    const permits = (owner: string, at: number, weight: number): Operation =>
      call('acquire', owner, [at, at + 1], { weight, capacity: 3 })
    expect(checkLinearizability([permits('a', 0, 2), permits('b', 2, 1)], semaphore).verdict).toBe('held')
    expect(checkLinearizability([permits('a', 0, 2), permits('b', 2, 2)], semaphore).verdict).toBe('broke')
  })

  it('read-write: readers together, writers alone, tokens above the last writer’s', () => {
    const reads = (owner: string, at: number, token: number): Operation =>
      call('acquire', owner, [at, at + 1], { weight: 1, capacity: ALL, token })
    const writes = (owner: string, at: number, token: number): Operation =>
      call('acquire', owner, [at, at + 1], { weight: ALL, capacity: ALL, token })
    const wrote = call('release', 'w', [2, 3], { weight: ALL, capacity: ALL })
    expect(checkLinearizability([reads('a', 0, 9), reads('b', 2, 8)], readWriteLock).verdict).toBe('held')
    expect(checkLinearizability([reads('a', 0, 1), writes('w', 2, 2)], readWriteLock).verdict).toBe('broke')
    expect(checkLinearizability([writes('w', 0, 5), reads('a', 2, 6)], readWriteLock).verdict).toBe('broke')
    expect(checkLinearizability([writes('w', 0, 5), wrote, reads('a', 4, 6)], readWriteLock).verdict).toBe(
      'held',
    )
    expect(checkLinearizability([writes('w', 0, 5), wrote, reads('a', 4, 4)], readWriteLock).verdict).toBe(
      'broke',
    )
  })
})

describe('a writer that goes on as a reader', () => {
  const shape = { capacity: ALL, token: 5 }
  const writer = call('acquire', 'w', [0, 1], { ...shape, weight: ALL })
  const downgrade = (end: number | null): Operation =>
    call('downgrade', 'w', [2, end], { ...shape, weight: ALL })
  const reads = (from: number, to: number): Operation =>
    call('acquire', 'a', [from, to], { capacity: ALL, token: 6 })
  const writes = (from: number, to: number): Operation =>
    call('acquire', 'b', [from, to], { capacity: ALL, weight: ALL, token: 9 })
  const left = call('release', 'w', [10, 11], { ...shape, weight: ALL })
  const verdict = (...calls: Operation[]): string => checkLinearizability(calls, readWriteLock).verdict

  it('lets readers in from then on, and writers when it has left', () => {
    expect(verdict(writer, downgrade(4), reads(5, 6), left)).toBe('held')
    expect(verdict(writer, reads(1, 1), downgrade(4), left)).toBe('broke')
    expect(verdict(writer, downgrade(4), writes(5, 6), left)).toBe('broke')
    expect(verdict(writer, downgrade(4), left, writes(12, 13))).toBe('held')
  })

  it('may have become one or not, if nobody heard', () => {
    expect(verdict(writer, downgrade(null), reads(5, 6), left)).toBe('held')
    expect(verdict(writer, downgrade(null), left, writes(12, 13))).toBe('held')
    expect(verdict(writer, downgrade(null), writes(5, 6), left)).toBe('broke')
  })
})

describe('the calls of a history', () => {
  it('have a downgrade between the acquire and the release', () => {
    let now = 0n
    const recorder = new Recorder('p', { now: () => (now += 10n) })
    const story = recorder.acquire('n', { weight: ALL, capacity: ALL })
    story.acquired({ token: 1n, remaining: () => 1 })
    story.downgrading()
    story.downgraded('downgraded')
    story.releasing()
    story.released('released')
    const calls = operationsOf(recorder.events)
    expect(calls.map(({ action, call: from, end }) => [action, Number(from), Number(end)])).toEqual([
      ['acquire', 10, 30],
      ['downgrade', 40, 50],
      ['release', 60, 70],
    ])
    expect(holdsOf(recorder.events)).toMatchObject([{ from: 30n, readsFrom: 40n, to: 60n, weight: ALL }])
  })

  it('end where the belief ended, and leave out what failed', () => {
    let now = 0n
    const recorder = new Recorder('p', { now: () => now })
    const at = (time: bigint, write: () => void): void => {
      now = time
      write()
    }
    const first = recorder.acquire('n')
    at(10n, () => first.acquired({ token: 1n, remaining: () => 0.00009 }))
    const second = recorder.acquire('n')
    at(20n, () => second.failed())
    const calls = operationsOf(recorder.events)
    expect(calls.map(({ action, call: from, end }) => ({ action, from, end }))).toEqual([
      { action: 'acquire', from: 0n, end: 10n },
      { action: 'release', from: 100n, end: undefined },
    ])
  })
})

describe('A run of hours', () => {
  it('takes a moment to be judged: what is placed for good is not looked at again', () => {
    const turns = 10_000
    const operations = Array.from({ length: turns }, (_, turn) => [
      take(`a#${turn}`, [turn * 10, turn * 10 + 3], turn),
      give(`a#${turn}`, [turn * 10 + 5, turn * 10 + 7]),
    ]).flat()
    const before = process.cpuUsage()
    expect(checkLinearizability(operations, fencedMutex)).toMatchObject({ verdict: 'held' })
    // With the whole set of calls in each step it took more than a minute.
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(15)
  })
})
