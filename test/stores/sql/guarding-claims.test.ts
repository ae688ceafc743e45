import { expect, it, vi } from 'vitest'

it('is one list for two copies of the package', async () => {
  const path = '../../../src/stores/sql/guarding-claims.ts'
  type Copy = typeof import('../../../src/stores/sql/guarding-claims.ts')
  const first = (await import(path)) as Copy
  vi.resetModules()
  const second = (await import(path)) as Copy
  expect(second.isGuarding).not.toBe(first.isGuarding)
  const release = first.keepGuarding(['a claim'])
  expect(second.isGuarding('a claim')).toBe(true)
  release()
  expect(second.isGuarding('a claim')).toBe(false)
})
