import { spawn } from 'node:child_process'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, redis } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

const dist = (path: string): string => new URL(`../../../dist/${path}`, import.meta.url).href

const CLIENTS = {
  ioredis: "const client = new (await import('ioredis')).Redis(port)",
  redis: "const client = (await import('redis')).createClient({ socket: { port } }); await client.connect()",
}

/** Against the built package, as the tests in test/process. */
describe.skipIf(!available('redis')).each(Object.entries(CLIENTS))(
  'a process whose client of %s has quit',
  (_, connect) => {
    let server: Server
    beforeAll(async () => void (server = await redis()))
    afterAll(() => server.stop())

    it.each([
      ['one acquire', "await holdfast.mutex('x').run(() => {})"],
      [
        'a wait',
        "const other = new Holdfast(redisStore(client)); const lease = await other.mutex('x').acquire(); setTimeout(() => lease.release(), 50); await holdfast.mutex('x').run(() => {})",
      ],
    ])('ends after %s, although nothing was closed', async (__, body) => {
      const program = `
        import { Holdfast } from '${dist('index.js')}'
        import { redisStore } from '${dist('stores/redis/index.js')}'
        const port = ${server.port}
        ${connect}
        const holdfast = new Holdfast(redisStore(client))
        ${body}
        await new Promise((resolve) => setTimeout(resolve, 100))
        await client.quit()
        console.log('done')`
      expect(await run(program)).toEqual({ code: 0, output: 'done' })
    })
  },
)

/** A driver that gives up has nothing left that keeps the process alive: only whoever waits for an answer does. */
describe('a process whose servers are not there', () => {
  const nobody = '127.0.0.1:1,127.0.0.1:2,127.0.0.1:3'
  const urls = [
    'redis://127.0.0.1:1',
    `redis+sentinel://${nobody}/primary`,
    `redis+cluster://${nobody}`,
    `redlock://${nobody}`,
  ]

  it('hears so from open, of every kind of server and driver', async () => {
    const told = urls.flatMap((url) =>
      Object.keys(CLIENTS).map(async (driver) => {
        const program = `
          import { open } from '${dist('index.js')}'
          await open('${url}?driver=${driver}').catch(({ code }) => console.log(code))`
        return [url, driver, await run(program)]
      }),
    )
    for (const [, , said] of await Promise.all(told))
      expect(said).toEqual({ code: 0, output: 'STORE_UNAVAILABLE' })
  })

  it('hears so from everything that it asks through a client of its own that has given up', async () => {
    const asked = [
      'inspect(name)',
      'list()',
      'mutex(name).tryAcquire()',
      'mutex(name).acquire({ wait: 200 })',
    ]
    const told = asked.map((question) =>
      run(`
        import { createCluster } from 'redis'
        import { Holdfast } from '${dist('index.js')}'
        import { redisStore } from '${dist('stores/redis/index.js')}'
        const client = createCluster({ rootNodes: [{ socket: { port: 1, reconnectStrategy: false } }] })
        client.on('error', () => {})
        await client.connect().catch(() => {})
        const holdfast = new Holdfast(redisStore(client), { requestTimeout: 500, ttl: 500 })
        const name = 'job'
        await holdfast.${question}.catch(({ code }) => console.log(code))`),
    )
    for (const said of await Promise.all(told))
      expect(said).toMatchObject({ code: 0, output: expect.stringMatching(/^[A-Z_]+$/) as string })
  })
})

async function run(program: string): Promise<{ readonly code: unknown; readonly output: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { timeout: 40_000 })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const code = await new Promise((resolve) => void child.on('close', resolve))
  return { code, output: output.trim() }
}
