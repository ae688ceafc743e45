import { expect, it } from 'vitest'

import { table } from '../../src/cli/table.ts'

const rows = [
  [
    'a-very-long-name-of-a-lock-that-nobody-can-read-at-once',
    'mutex',
    'host.example.com (4711)',
    '1794954241568000',
    '2s',
    '0',
  ],
  ['b', 'mutex', 'é'.repeat(60), '1794954241568001', '2s', '12345678'],
]
const header = ['NAME', 'KIND', 'HELD BY', 'TOKEN', 'FOR', 'WAITING']

it('is as wide as it has to be where nobody looks', () => {
  const lines = table(header, rows).split('\n')
  expect(lines).toHaveLength(3)
  expect(lines[1]).toContain(rows[0]?.[0])
  expect(lines[2]).toContain(rows[1]?.[2])
})

it.each([80, 100, 120])('has no line that a terminal of %i columns would break', (columns) => {
  const lines = table(header, rows, columns).split('\n')
  expect(lines).toHaveLength(3)
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns)
  expect(lines[1]).toContain('…')
  // Columns that are short anyway are left alone.
  for (const word of ['1794954241568000', 'mutex', '2s']) expect(lines[1]).toContain(word)
})
