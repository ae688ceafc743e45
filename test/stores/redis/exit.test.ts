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
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], { timeout: 20_000 })
      let output = ''
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
      const code = await new Promise((resolve) => void child.on('close', resolve))
      expect({ code, output: output.trim() }).toEqual({ code: 0, output: 'done' })
    })
  },
)
