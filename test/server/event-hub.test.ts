import { expect, it, vi } from 'vitest'

import { Book } from '../../src/server/book.ts'
import { EventHub } from '../../src/server/event-hub.ts'
import { Principal } from '../../src/server/rights.ts'
import { afterwards } from './helpers.ts'

function setUp(): { hub: EventHub; grant: (name: string) => void; heard: (name: string) => string } {
  vi.useFakeTimers()
  afterwards(() => vi.useRealTimers())
  const book = new Book('memory')
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
  return { hub, grant, heard: (name) => readers.get(name) ?? '' }
}

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
