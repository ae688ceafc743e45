import { afterEach, describe, expect, it, vi } from 'vitest'

import { openSqliteStore } from '../../../../src/stores/sqlite/open.ts'
import { required } from '../../../../src/transport/driver.ts'

vi.mock(import('../../../../src/transport/driver.ts'), { spy: true })

afterEach(() => void vi.restoreAllMocks())

/** better-sqlite3, on a Node that brings no SQLite along, where opening fails so. */
function failing(error: Error): void {
  vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined)
  vi.mocked(required).mockReturnValue(
    class {
      constructor() {
        throw error
      }
    },
  )
}

describe('better-sqlite3', () => {
  it.each([
    ['is missing', new Error('Could not locate the bindings file. Tried:\n → build/better_sqlite3.node')],
    [
      'is for another Node',
      Object.assign(new Error('was compiled against a different Node.js version'), {
        code: 'ERR_DLOPEN_FAILED',
      }),
    ],
  ])('whose native program %s is told what to do about', async (_, cause) => {
    failing(cause)
    await expect(openSqliteStore('sqlite:locks.db')).rejects.toThrow(
      expect.objectContaining({
        code: 'DRIVER_MISSING',
        message: expect.stringContaining('npm rebuild better-sqlite3') as string,
        cause,
      }),
    )
  })

  it('that cannot open the file says so itself', async () => {
    const error = new TypeError('Cannot open database because the directory does not exist')
    failing(error)
    await expect(openSqliteStore('sqlite:nowhere/locks.db')).rejects.toBe(error)
  })
})
