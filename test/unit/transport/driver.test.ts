import { describe, expect, it } from 'vitest'

import { absent, driver, required } from '../../../src/transport/driver.ts'
import type { Driver } from '../../../src/transport/driver.ts'

const redis: Omit<Driver<{ Redis: unknown }>, 'load'> = {
  module: 'no-such-driver',
  has: 'Redis',
  oldest: [5, 0],
}

describe('a driver that the user installs', () => {
  it('is required where it can be, and imported where it cannot', async () => {
    const load = (): Promise<unknown> => Promise.reject(new Error('not asked for'))
    expect(await driver({ ...redis, module: 'ioredis', load })).toBe(required('ioredis'))
    const bundled = { Redis: 1 }
    expect(await driver({ ...redis, load: async () => bundled })).toBe(bundled)
  })

  it('is found below the default export that an import or a bundler puts it under', async () => {
    const bundled = { Redis: 1 }
    expect(await driver({ ...redis, load: async () => ({ default: bundled }) })).toBe(bundled)
  })

  it('is undefined when it is not installed', async () => {
    expect(await driver({ ...redis, load: async () => undefined })).toBeUndefined()
    expect(required('no-such-driver')).toBeUndefined()
  })
})

describe('a version that does not work', () => {
  const { version } = required('ioredis/package.json') as { version: string }
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const asked = (oldest: [number, number]): Promise<unknown> =>
    driver<{ Redis: unknown }>({ ...redis, module: 'ioredis', oldest, load: async () => undefined })

  it('is refused with what to install', async () => {
    for (const oldest of [
      [major, minor + 1],
      [major + 1, 0],
    ] as const) {
      await expect(asked([...oldest])).rejects.toMatchObject({
        code: 'DRIVER_MISSING',
        message: `The package ioredis is installed as ${version}, and ${oldest.join('.')} is the oldest that works: npm install ioredis@latest`,
      })
    }
  })

  it('is no newer one', async () => {
    for (const oldest of [
      [major, minor],
      [major - 1, minor + 1],
    ] as const) {
      expect(await asked([...oldest])).toBe(required('ioredis'))
    }
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
