import { sep } from 'node:path'

import { expect, it } from 'vitest'

import { elsewhere } from '../../../src/cli/driver-place.ts'

const path = (...parts: readonly string[]): string => ['', ...parts].join(sep)
const project = path('home', 'me', 'shop')

it.each([
  path('home', 'me', 'shop', 'node_modules', 'holdfast'),
  path('home', 'me', 'shop', 'node_modules', '.pnpm', 'holdfast@1', 'node_modules', 'holdfast'),
  path('home', 'me', 'node_modules', 'holdfast'),
])('is silent of a command that belongs to the project: %s', (folder) => {
  expect(elsewhere(folder, project)).toBeUndefined()
})

it.each([
  path('usr', 'lib', 'node_modules', 'holdfast'),
  path('home', 'me', 'shop2', 'node_modules', 'holdfast'),
  path('home', 'me', 'shop', 'sub', 'node_modules', 'holdfast'),
])('says where a command looks that is somewhere else: %s', (folder) => {
  expect(elsewhere(folder, project)).toContain(`is in ${folder}, and looks for drivers from there`)
})

it('says where this one is', () => {
  expect(elsewhere(undefined, path('elsewhere'))).toContain('holdfast is in ')
})
