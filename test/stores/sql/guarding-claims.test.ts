import { expect, it, vi } from 'vitest'

it('is one list for two copies of the package', async () => {
  const first = await import('../../../src/stores/sql/guarding-claims.ts')
  vi.resetModules()
  const second = await import('../../../src/stores/sql/guarding-claims.ts')
  expect(second.isGuarding).not.toBe(first.isGuarding)
  const release = first.keepGuarding(['a claim'])
  expect(second.isGuarding('a claim')).toBe(true)
  release()
  expect(second.isGuarding('a claim')).toBe(false)
})
