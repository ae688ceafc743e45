import assert from 'node:assert/strict'
import { test } from 'node:test'

import { randomFrom, shuffled } from '../lib/random.mjs'

await test('the same seed gives the same order, another seed another', () => {
  const list = Array.from({ length: 50 }, (_, number) => number)
  assert.deepEqual(shuffled(list, randomFrom(7)), shuffled(list, randomFrom(7)))
  assert.notDeepEqual(shuffled(list, randomFrom(7)), shuffled(list, randomFrom(8)))
})

await test('a shuffle loses and invents nothing, and leaves the list alone', () => {
  const list = ['a', 'b', 'c', 'd']
  assert.deepEqual([...shuffled(list, randomFrom(1))].sort(), list)
  assert.deepEqual(list, ['a', 'b', 'c', 'd'])
})

await test('every element comes first about equally often', () => {
  const random = randomFrom(3)
  const firsts = { a: 0, b: 0, c: 0 }
  for (let draw = 0; draw < 3000; draw++) firsts[shuffled(['a', 'b', 'c'], random)[0]]++
  for (const count of Object.values(firsts)) assert.ok(count > 850 && count < 1150, `${count} of 3000`)
})
