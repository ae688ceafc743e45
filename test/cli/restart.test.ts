import { join } from 'node:path'

import { afterEach, expect, it, vi } from 'vitest'

import { endAll, holdfast, run, sh, tempFolder } from './cli.ts'
import type { Running } from './cli.ts'

afterEach(endAll)

interface Said {
  readonly url: string
  readonly startsIn: number
}

async function serve(listen: string, state: string): Promise<Running & Said> {
  const server = holdfast(['serve', '--listen', listen, '--state', state, '--json'])
  await server.says(/"startsIn":\d+.*\n/)
  const { url, startsIn } = JSON.parse(server.stdout) as Said
  return Object.assign(server, { url, startsIn })
}

it('a planned restart of the server ends no command, keeps locks of scripts, and the line', async () => {
  const state = join(tempFolder(), 'state.json')
  let server = await serve('127.0.0.1:0', state)
  const { url } = server
  // Longer than the restarts take on a machine that has a lot else to do. A server that forgot them would say so at once.
  const ttl = ['--ttl', '60s']
  const holder = holdfast(['run', 'a', ...ttl, ...sh('echo in; read -r _; exit 6')], { url })
  await holder.says('in')
  const next = holdfast(['run', 'a', ...ttl, '--wait', '120s', ...sh('echo next; exit 7')], { url })
  const { stdout: lease } = await run(['acquire', 'b', ...ttl, '--print', 'lease'], { url })
  for (let restart = 0; restart < 3; restart++) {
    server.kill('SIGTERM')
    expect(await server.end()).toBe(0)
    server = await serve(url.replace('holdfast://', ''), state)
    expect(server.startsIn).toBe(0)
    await new Promise((resolve) => void setTimeout(resolve, 2000))
  }
  expect(holder.process.exitCode).toBeNull()
  expect(next.stdout).toBe('')
  holder.process.stdin?.end('\n')
  expect(await holder.end()).toBe(6)
  expect(holder.stderr).toBe('')
  expect(await next.end()).toBe(7)
  expect((await run(['run', 'b', '--wait', '0', '--', 'true'], { url })).code).toBe(75)
  expect((await run(['release', lease.trim()], { url })).code).toBe(0)
}, 180_000)

it.each([
  ['SIGINT', 'SIGTERM'],
  ['SIGTERM', 'SIGINT', 'SIGQUIT'],
  ['SIGTERM', 'SIGHUP'],
] as const)(
  '%s and what follows in the same moment are one stop, which loses nothing',
  async (...signals) => {
    const state = join(tempFolder(), 'state.json')
    const server = await serve('127.0.0.1:0', state)
    const { url } = server
    const { stdout: lease } = await run(['acquire', 'a', '--ttl', '60s', '--print', 'lease'], { url })
    const waiter = holdfast(['run', 'a', '--wait', '60s', '--', 'true'], { url })
    await vi.waitUntil(async () => (await run(['inspect', 'a'], { url })).stdout.includes('waits'), 10_000)
    for (const signal of signals) server.kill(signal)
    expect(await server.end()).toBe(0)
    const next = await serve(url.replace('holdfast://', ''), state)
    expect(next.startsIn).toBe(0)
    expect((await run(['release', lease.trim()], { url })).code).toBe(0)
    expect(await waiter.end()).toBe(0)
  },
  60_000,
)
