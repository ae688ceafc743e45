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

it.each([
  ['EPIPE', true],
  ['ECONNRESET', true],
  ['57P01', true],
  ['08006', true],
  ['23505', false],
  ['40001', false],
])('keeps a claim while nobody knows what became of its commit: %s, %j', async (code, stays) => {
  const { guarding, isGuarding, guardsNoMore } = await import('../../../src/stores/sql/guarding-claims.ts')
  const failing = guarding({ ids: ['in doubt'], end: () => {} }, (beforeCommit) => {
    beforeCommit()
    return Promise.reject(Object.assign(new Error('no commit'), { code }))
  })
  await expect(failing).rejects.toThrow('no commit')
  expect(isGuarding('in doubt')).toBe(stays)
  guardsNoMore('in doubt')
})
