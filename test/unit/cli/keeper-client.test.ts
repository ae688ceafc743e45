import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { leasesOn } from '../../../src/cli/keeper/client.ts'

let folder = ''
const servers: Server[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-keepers-'))
  mkdirSync(join(folder, 'holdfast'), { mode: 0o700 })
  vi.stubEnv('XDG_RUNTIME_DIR', folder)
})
afterEach(() => {
  vi.unstubAllEnvs()
  for (const server of servers.splice(0)) server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Something that listens where a keeper does; without a name it is stopped, and says nothing. */
async function keeper(lease: string, name?: string): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined)
    if (name !== undefined) socket.once('data', () => socket.end(`${JSON.stringify({ name })}\n`))
  })
  servers.push(server)
  await new Promise<void>((resolve) => void server.listen(join(folder, 'holdfast', `${lease}.sock`), resolve))
}

it('finds a lease by its name beside a keeper that does not answer', async () => {
  await keeper('00000000000000aa')
  await keeper('00000000000000bb', 'two')
  expect(await leasesOn('two', 100)).toEqual(['00000000000000bb'])
})

it('does not say that there is none while a keeper does not answer', async () => {
  await keeper('00000000000000aa')
  await keeper('00000000000000bb', 'two')
  await expect(leasesOn('one', 100)).rejects.toThrow('00000000000000aa does not answer')
})
