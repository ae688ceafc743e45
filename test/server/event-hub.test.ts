import { expect, it, vi } from 'vitest'

import { ClaimRegistry } from '../../src/server/claim-registry.ts'
import type { Activity } from '../../src/server/claim-registry.ts'
import { EventHub } from '../../src/server/event-hub.ts'
import { Principal } from '../../src/server/rights.ts'
import { afterwards } from './helpers.ts'

interface SetUp {
  readonly hub: EventHub
  readonly ops: Principal
  readonly grant: (name: string) => void
  readonly heard: (name: string) => string
}

function setUp(): SetUp {
  vi.useFakeTimers()
  afterwards(() => vi.useRealTimers())
  const book = new ClaimRegistry('memory')
  afterwards(() => book.close())
  const hub = new EventHub(book)
  const readers = new Map<string, string>()
  const add = (name: string, principal: Principal, prefix: string): void => {
    readers.set(name, '')
    hub.add(principal, prefix, (text) => void readers.set(name, `${readers.get(name) ?? ''}${String(text)}`))
  }
  const ops = new Principal('ops', ['read'], ['*'])
  add('all', ops, '')
  add('too', ops, '')
  add('some', ops, 'a/')
  add('few', new Principal('few', ['read'], ['b/']), '')
  let count = 0
  const caller = { principal: ops, remote: 'here', request: '1' }
  const grant = (name: string): void => {
    count++
    const request = { name, id: `s.${count}`, weight: 1, capacity: 1, ttl: 1000, patience: 1000, tokens: 1 }
    book.claimed(
      caller,
      { ...request, whenBusy: 'try', owner: 'o' },
      { kind: 'held', token: 1n, count: 1, contended: false },
    )
  }
  return { hub, ops, grant, heard: (name) => readers.get(name) ?? '' }
}

/** A long one: the longest that a server takes has 512 bytes. */
const NAME = 'a/'.padEnd(500, 'n')
/** Of what it costs without them. */
const MOST = 50

const namesIn = (text: string): string[] =>
  [...text.matchAll(/"name":"([^"]+)"/g)].map(([, name = '']) => name)

it('tells everybody what they may and want to see, in order', async () => {
  const { grant, heard } = setUp()
  for (const name of ['a/1', 'b/1', 'a/2', 'c']) grant(name)
  await vi.advanceTimersByTimeAsync(60)
  expect(namesIn(heard('all'))).toEqual(['a/1', 'b/1', 'a/2', 'c'])
  expect(heard('too')).toBe(heard('all'))
  expect(namesIn(heard('some'))).toEqual(['a/1', 'a/2'])
  expect(namesIn(heard('few'))).toEqual(['b/1'])
})

it('tells how many events it left out when there are more than anybody could follow', async () => {
  const { grant, heard } = setUp()
  for (let index = 0; index < 1000; index++) grant(`a/${index}`)
  await vi.advanceTimersByTimeAsync(60)
  expect(namesIn(heard('all'))).toHaveLength(64)
  expect(heard('all')).toContain('event: missed\ndata: {"count":936}\n\n')
  expect(heard('few')).toBe('')
  grant('a/last')
  await vi.advanceTimersByTimeAsync(60)
  expect(namesIn(heard('all')).at(-1)).toBe('a/last')
})

it.each([
  ['of other names', 4000, (index: number) => `other/${index}`],
  // Sets of streams are small and names are long: each length of a prefix must not cost a reading of the name.
  ['of prefixes of every length', 400, (index: number) => 'z'.repeat(index + 1)],
  ['of long beginnings', 400, (index: number) => `${NAME.slice(0, index + 1)}z`],
])('costs no more for readers %s, however many there are', (_, readers, prefixOf) => {
  const { ops } = setUp()
  let tell: (activity: Activity) => void = () => undefined
  const hub = new EventHub({
    listen: (listener) => {
      tell = listener
      return () => undefined
    },
  })
  const leave = [hub.add(ops, 'a/', () => undefined)]
  const cost = (): number => {
    const before = process.cpuUsage()
    for (let index = 0; index < 10_000; index++)
      tell({ kind: 'held', name: `${NAME}${index}`, owner: 'o', token: '1' })
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  cost()
  const alone = cost()
  for (let index = 0; index < readers; index++) leave.push(hub.add(ops, prefixOf(index), () => undefined))
  expect(cost() / alone).toBeLessThan(MOST)
  for (const stop of leave) stop()
})

it('looks a name up among thousands of prefixes that a token may have, and finds what it found by comparing them', () => {
  const parts = ['a', 'b', '/', ':', 'ab', 'ä', '😀', '*']
  const texts = parts.flatMap((one) => parts.flatMap((two) => parts.map((three) => one + two + three)))
  const separated = (char = ''): boolean => char === '/' || char === ':'
  for (const prefix of [...parts.slice(0, -1), ...texts.filter((text) => !text.includes('*'))]) {
    const principal = new Principal('p', ['read'], ['elsewhere/', prefix])
    for (const name of [...parts, ...texts]) {
      const within =
        name.startsWith(prefix) &&
        (name.length === prefix.length || separated(prefix.at(-1)) || separated(name[prefix.length]))
      if (principal.may('read', name) !== within) throw new Error(`${name} in ${prefix}: not ${within}`)
    }
  }
  const cost = (count: number): number => {
    const prefixes = Array.from({ length: count }, (_, index) => `shop/${String(index).padStart(6, '0')}/`)
    const principal = new Principal('p', ['read'], prefixes)
    const before = process.cpuUsage()
    for (let index = 0; index < 20_000; index++) principal.may('read', 'shop/none/1')
    const { user, system } = process.cpuUsage(before)
    return user + system
  }
  cost(5)
  expect(cost(5000) / cost(5)).toBeLessThan(MOST)
})

it('tells each reader what is within its own prefix, whoever comes and goes beside it', async () => {
  const { hub, ops, grant, heard } = setUp()
  const told = new Map<string, string>()
  const prefixes = ['', 'a', 'a/', 'a/1', 'a/10', 'b', 'ab', 'ä', '😀/']
  const names = ['a', 'a/1', 'a/10', 'a/100', 'ab', 'b/1', 'ä/1', '😀/1', '😀', 'c']
  const stops = prefixes.map((prefix) =>
    hub.add(ops, prefix, (text) => void told.set(prefix, (told.get(prefix) ?? '') + String(text))),
  )
  const tell = async (): Promise<void> => {
    told.clear()
    for (const name of names) grant(name)
    await vi.advanceTimersByTimeAsync(60)
  }
  for (let gone = 0; gone <= prefixes.length; gone++) {
    await tell()
    for (const [index, prefix] of prefixes.entries()) {
      const wanted = index < gone ? [] : names.filter((name) => name.startsWith(prefix))
      expect(namesIn(told.get(prefix) ?? '')).toEqual(wanted)
    }
    stops[gone]?.()
  }
  expect(namesIn(heard('all'))).toHaveLength(names.length * (prefixes.length + 1))
})
