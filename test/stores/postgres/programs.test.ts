import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, postgres } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = readFileSync(`${root}/docs/stores/postgres.md`, 'utf8')
const PASTED = 'postgres://app@localhost/shop'

/** Runs a program on the built package, whose name leads to it in this folder. */
async function run(program: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: root })
  const ended = once(child, 'close')
  const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = (await ended) as [number | null]
  return { code, output: out + error }
}

describe.skipIf(!available('postgres'))('a program with a pool of its own, PostgreSQL', () => {
  let server: Server

  beforeAll(async () => {
    server = await postgres()
  })
  afterAll(() => server.stop())

  it('ends its pool, and goes on from there, although no Holdfast was closed', async () => {
    const { code, output } = await run(`
      import { Pool } from 'pg'
      import { Holdfast } from 'holdfast'
      import { postgresStore } from 'holdfast/postgres'
      const pool = new Pool({ connectionString: '${server.url}' })
      const [mutex, other] = [0, 0].map(() => new Holdfast(postgresStore(pool)).mutex('ended'))
      const lease = await mutex.acquire()
      const waiting = other.acquire()
      const waiters = async () => (await new Holdfast(postgresStore(pool)).inspect('ended')).waiters
      while ((await waiters()).length === 0);
      await lease.release()
      await (await waiting).release()
      await pool.end()
      console.log('ended')`)
    expect({ code, output }).toEqual({ code: 0, output: 'ended\n' })
  })

  it('as the page shows it, goes on when the server ends its connections', async () => {
    const example = [...page.matchAll(/^```ts\n([^]*?)^```$/gm)]
      .map(([, code = '']) => code)
      .find((code) => code.includes('new Pool('))
    expect(example).toContain(PASTED)
    const { code, output } = await run(`
      const [seat, sell, log] = [7, () => console.log('sold'), { warn: () => console.log('told') }]
      ${example?.replace(PASTED, `${server.url}?application_name=pasted`)}
      const { Client } = await import('pg')
      const other = new Client('${server.url}')
      await other.connect()
      await other.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pasted'")
      const theirs = () => other.query("SELECT FROM pg_stat_activity WHERE application_name = 'pasted'")
      while ((await theirs()).rowCount > 0 || pool.totalCount > 0);
      await other.end()
      await holdfast.mutex('train:G101').run(sell)
      await holdfast.close()
      await pool.end()`)
    expect(output).toMatch(/^sold\n(told\n)+sold\n$/)
    expect(code).toBe(0)
  })
})
