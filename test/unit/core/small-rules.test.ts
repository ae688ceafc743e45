import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { nearest, said } from '../../../src/core/arguments.ts'
import { OneOrMany } from '../../../src/core/one-or-many.ts'
import { emptyQueue, isIdle, isSpent, view } from '../../../src/core/queue-state.ts'
import { hasSecret, redact } from '../../../src/core/redact.ts'
import { sessionOf, step, WITHDRAWN_MS } from '../../../src/core/claim-queue.ts'
import { Line } from '../../../src/runtime/line.ts'
import { Task } from '../../../src/runtime/task.ts'

describe('a URL as it may be shown', () => {
  it.each([
    ['redis://h:6379/0', 'redis://h:6379/0'],
    ['redis://h?db=1#x', 'redis://h?db=1#x'],
    ['redis://user:pw@h:6379/0', 'redis://user:***@h:6379/0'],
    ['redis://:pw@h', 'redis://:***@h'],
    ['redis://user@h', 'redis://user@h'],
    ['redlock://u:p@h1,h2/0?maxTtl=5', 'redlock://u:***@h1,h2/0?maxTtl=5'],
    ['redlock://u:p@h1,u:q@h2', 'redlock://u:***@h1,u:***@h2'],
    ['redis://?password=pw', 'redis://?password=***'],
    ['redis://h?password=pw&x=1', 'redis://h?password=***&x=1'],
    ['redis://h/?x=1&authToken=pw#k', 'redis://h/?x=1&authToken=***#k'],
    ['redis://u:pw@h?sslkey=s', 'redis://u:***@h?sslkey=***'],
    ['mysql://h/db?ssl={"passphrase":"pw"}', 'mysql://h/db?ssl=***'],
    ['mysql://h/db?ssl=%7B%22%6Bey%22:%22pw%22%7D&x=1', 'mysql://h/db?ssl=***'],
    ['mysql://h/db?ssl={"pfx":"p&w"}', 'mysql://h/db?ssl=***'],
    ['mysql://h/db?ssl=%7B%', 'mysql://h/db?ssl=***'],
    ['mysql://h/db?ssl={"rejectUnauthorized":true}&x=1', 'mysql://h/db?ssl={"rejectUnauthorized":true}&x=1'],
    // Where it is not quite a URL, more than the password is hidden.
    ['redis://u:p@w@h/0', 'redis://***@h/0'],
    ['redis://u:p/w@h', 'redis://***@h'],
    ['redis://u:p?w@h', 'redis://***@h'],
    ['redis://h,u:p@w@h2', 'redis://***@h2'],
    ['redis://h?password=p@w', 'redis://***'],
    ['mysql://u@h/db?ssl={"passphrase":"p@w"}', 'mysql://***'],
    ['redis:u:pw@h', 'redis:***@h'],
    ['u:pw@h', 'u:***@h'],
    ['host,u:pw@h2', '***@h2'],
    // Files have what names they like.
    ['sqlite:./a@b.db?key=k', 'sqlite:./a@b.db?key=***'],
    ['sqlite:///a@b.db', 'sqlite:///a@b.db'],
    ['holdfast+unix:///tmp/u:p@h', 'holdfast+unix:///tmp/u:p@h'],
    ['holdfast+unix://:p@/tmp/h', 'holdfast+unix://***@/tmp/h'],
    ['', ''],
    ['nothing', 'nothing'],
  ])('%s', (url, shown) => {
    expect(redact(url)).toBe(shown)
    expect(hasSecret(url)).toBe(shown !== url)
  })
})

describe('what was probably meant', () => {
  const known = ['ttl', 'wait', 'signal', 'maxHold', 'renew']

  it.each([
    ['tll', 'ttl'],
    ['TTL', 'ttl'],
    ['wiat', 'wait'],
    ['wai', 'wait'],
    ['waits', 'wait'],
    ['maxhold', 'maxHold'],
    ['max_hold', 'maxHold'],
    ['maxHolds', 'maxHold'],
    ['signla', 'signal'],
    ['singal', 'signal'],
    ['sgnl', 'signal'],
    ['renwe', 'renew'],
    // Too far from all of them, for their length.
    ['t', undefined],
    ['xyz', undefined],
    ['timeout', undefined],
    ['sinlga', undefined],
    ['', undefined],
  ])('by "%s" is %s', (word, meant) => {
    expect(nearest(word, known)).toBe(meant)
  })

  it('is the nearest, and of equals the first', () => {
    expect(nearest('abcd', ['abxy', 'abcx', 'abcd'])).toBe('abcd')
    expect(nearest('abcd', ['abxy', 'abcx', 'xbcd'])).toBe('abcx')
  })

  it('is one slip away: a letter too many, too few, another one, or two in the wrong order', () => {
    const letters = fc.string({
      unit: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
      minLength: 2,
      maxLength: 9,
    })
    const slips = fc.constantFrom('none', 'drop', 'add', 'other', 'swap')
    fc.assert(
      fc.property(letters, slips, fc.nat(100), (word, slip, where) => {
        const at = where % (word.length - 1)
        const [before, letter, next, rest] = [word.slice(0, at), word[at], word[at + 1], word.slice(at + 2)]
        const written = {
          none: word,
          drop: `${before}${next}${rest}`,
          add: `${before}z${letter}${next}${rest}`,
          other: `${before}z${next}${rest}`,
          swap: `${before}${next}${letter}${rest}`,
        }[slip]
        expect(nearest(written, ['zzzzzzzzzzzzz', word])).toBe(word)
      }),
      { numRuns: 300 },
    )
  })

  it('is nothing of what was left undefined', () => {
    expect(said({ a: 1, b: undefined, c: null, d: 0 })).toEqual({ a: 1, c: null, d: 0 })
    expect(Object.keys(said({ b: undefined }))).toEqual([])
  })
})

describe('one or many entries', () => {
  it('are what a Map has', () => {
    const action = fc.record({ add: fc.boolean(), id: fc.constantFrom('a', 'b', 'c') })
    fc.assert(
      fc.property(fc.array(action, { maxLength: 12 }), (run) => {
        const [some, map] = [
          new OneOrMany<{ id: string; at: number }>(),
          new Map<string, { id: string; at: number }>(),
        ]
        run.forEach(({ add, id }, at) => {
          if (add) {
            some.add({ id, at })
            map.set(id, { id, at })
          } else {
            some.delete(id)
            map.delete(id)
          }
          expect(some.size).toBe(map.size)
          expect([...some.values()]).toEqual([...map.values()])
          for (const each of ['a', 'b', 'c']) expect(some.get(each)).toEqual(map.get(each))
        })
      }),
    )
  })
})

describe('a line of tasks', () => {
  it('is a list from which anybody may leave', () => {
    const action = fc.record({ do: fc.constantFrom('push', 'push', 'shift', 'remove'), which: fc.nat(20) })
    fc.assert(
      fc.property(fc.array(action, { maxLength: 30 }), (run) => {
        const line = new Line<Task>()
        const list: Task[] = []
        const shifted: boolean[] = []
        for (const { do: what, which } of run) {
          if (what === 'push') {
            const task = new Task(
              undefined as never,
              { since: 0, maxHold: 1 },
              () => {},
              () => {},
            )
            line.push(task)
            list.push(task)
          } else if (what === 'shift') shifted.push(line.shift() === (list.shift() ?? null))
          else {
            const [task] = list.splice(which % Math.max(list.length, 1), 1)
            if (task !== undefined) line.remove(task)
          }
          expect(shifted).not.toContain(false)
          expect(line.length).toBe(list.length)
          const seen: Task[] = []
          for (let task = line.first; task !== null; task = task.following) seen.push(task)
          expect(seen.length).toBe(list.length)
          expect(seen.every((task, at) => task === list[at])).toBe(true)
        }
      }),
    )
  })
})

describe('what a store knows of a name', () => {
  const at = (ms: number): { ms: number; micros: number } => ({ ms, micros: ms * 1_000 })
  const claim = (id: string, more = {}) =>
    ({
      kind: 'claim',
      request: {
        name: 'n',
        id,
        capacity: 1,
        weight: 1,
        ttl: 100,
        patience: 50,
        tokens: 2,
        whenBusy: 'queue',
        owner: 'me',
        ...more,
      },
    }) as const

  it('shows those who hold and wait, until they have run out', () => {
    const state = emptyQueue()
    step(state, claim('a.1'), at(0))
    step(state, claim('b.1', { owner: 'you' }), at(10))
    expect(view(state, 'n', at(20))).toEqual({
      name: 'n',
      capacity: 1,
      holders: [{ id: 'a.1', owner: 'me', weight: 1, token: 1n, expiresIn: 80 }],
      waiters: [{ id: 'b.1', owner: 'you', weight: 1, expiresIn: 40 }],
    })
    expect(view(state, 'n', at(60)).waiters).toEqual([])
    expect(view(state, 'n', at(99)).holders).toHaveLength(1)
    expect(view(state, 'n', at(100)).holders).toEqual([])
  })

  it('is spent when all of it has run out, and idle when nothing is left', () => {
    const state = emptyQueue()
    expect([isIdle(state), isSpent(state, at(0))]).toEqual([true, true])
    step(state, claim('a.1', { ttl: 30 }), at(0))
    expect([isIdle(state), isSpent(state, at(29)), isSpent(state, at(30))]).toEqual([false, false, true])
    step(state, claim('b.1'), at(0))
    expect([isSpent(state, at(49)), isSpent(state, at(50))]).toEqual([false, true])
    step(state, { kind: 'withdraw', claim: { name: 'n', id: 'b.1' } }, at(10))
    expect(isIdle(state)).toBe(false)
    step(state, { kind: 'release', claim: { name: 'n', id: 'a.1' } }, at(20))
    expect(isIdle(state)).toBe(false)
    expect([isSpent(state, at(9 + WITHDRAWN_MS)), isSpent(state, at(10 + WITHDRAWN_MS))]).toEqual([
      false,
      true,
    ])
    step(state, { kind: 'release', claim: { name: 'n', id: 'a.1' } }, at(10 + WITHDRAWN_MS))
    expect(isIdle(state)).toBe(true)
  })

  it('has withdrawn ids in the order in which they run out, also one that is withdrawn twice', () => {
    const state = emptyQueue()
    const withdraw = (id: string, ms: number): unknown =>
      step(state, { kind: 'withdraw', claim: { name: 'n', id } }, at(ms))
    withdraw('a.1', 0)
    withdraw('b.1', 1_000)
    withdraw('a.1', 2_000)
    withdraw('c.1', 1_000 + WITHDRAWN_MS)
    expect([...state.withdrawn.keys()]).toEqual(['a.1', 'c.1'])
    expect(step(state, claim('a.1'), at(1_999 + WITHDRAWN_MS)).answer).toEqual({ kind: 'busy' })
    expect(step(state, claim('a.1'), at(2_000 + WITHDRAWN_MS)).answer).toMatchObject({ kind: 'held' })
  })

  it('has withdrawn ids of its own', () => {
    const [one, other] = [emptyQueue(), emptyQueue()]
    step(one, { kind: 'withdraw', claim: { name: 'n', id: 'a.1' } }, at(0))
    expect(step(other, claim('a.1'), at(0)).answer).toMatchObject({ kind: 'held' })
  })

  it('says which session a claim is of', () => {
    expect(sessionOf('abc.17')).toBe('abc')
    expect(sessionOf('abc.1.2')).toBe('abc')
  })
})
