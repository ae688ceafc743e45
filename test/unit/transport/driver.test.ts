import { describe, expect, it } from 'vitest'

import { absent, driver, required } from '../../../src/transport/driver.ts'

describe('a driver that the user installs', () => {
  it('is required where it can be, and imported where it cannot', async () => {
    const load = (): Promise<unknown> => Promise.reject(new Error('not asked for'))
    expect(await driver<{ Redis: unknown }>('ioredis', 'Redis', load)).toBe(required('ioredis'))
    const bundled = { Redis: 1 }
    expect(await driver('no-such-driver', 'Redis', async () => bundled)).toBe(bundled)
  })

  it('is found below the default export that an import or a bundler puts it under', async () => {
    const bundled = { Redis: 1 }
    expect(await driver('no-such-driver', 'Redis', async () => ({ default: bundled }))).toBe(bundled)
  })

  it('is undefined when it is not installed', async () => {
    expect(await driver('no-such-driver', 'Redis', async () => undefined)).toBeUndefined()
    expect(required('no-such-driver')).toBeUndefined()
  })
})

describe('what is missing', () => {
  it.each([
    ['Node, import', `Cannot find package 'pg' imported from /app/main.mjs`],
    ['Node, require', `Cannot find module 'pg'\nRequire stack:\n- /app/main.cjs`],
    ['Vite', `Could not resolve "pg" imported by "holdfast". Is it installed?`],
    ['Deno', `Could not find package 'pg' in the dependencies`],
  ])('is the driver, in the words of %s', (_, message) => {
    expect(absent(new Error(message), 'pg')).toBeUndefined()
  })

  it('is told as it is when it is something that the driver needs, or when the driver fails', () => {
    for (const message of [`Cannot find package 'pg-pool' imported from /app/pg.js`, 'pg: no such option']) {
      const error = new Error(message)
      expect(() => absent(error, 'pg')).toThrow(error)
    }
  })
})
