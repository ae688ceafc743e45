import { join } from 'node:path'

import { afterEach, expect, it } from 'vitest'

import { endAll, holdfast, run, sh, tempFolder } from './cli.ts'
import type { Running } from './cli.ts'

afterEach(endAll)

async function serve(listen: string, state: string): Promise<Running & { readonly url: string }> {
  const server = holdfast(['serve', '--listen', listen, '--state', state, '--json'])
  await server.says(/"startsIn":\d+.*\n/)
  return Object.assign(server, { url: (JSON.parse(server.stdout) as { url: string }).url })
}

it('a planned restart of the server ends no command, keeps locks of scripts, and the line', async () => {
  const state = join(tempFolder(), 'state.json')
  let server = await serve('127.0.0.1:0', state)
  const { url } = server
  const ttl = ['--ttl', '8s']
  const holder = holdfast(['run', 'a', ...ttl, ...sh('echo in; read -r _; exit 6')], { url })
  await holder.says('in')
  const next = holdfast(['run', 'a', ...ttl, '--wait', '60s', ...sh('echo next; exit 7')], { url })
  const { stdout: lease } = await run(['acquire', 'b', ...ttl, '--print', 'lease'], { url })
  const began = performance.now()
  // Longer than any of the leases lasts by itself.
  do {
    server.kill('SIGTERM')
    expect(await server.end()).toBe(0)
    server = await serve(url.replace('holdfast://', ''), state)
    await new Promise((resolve) => void setTimeout(resolve, 1500))
  } while (performance.now() - began < 10_000)
  expect(holder.process.exitCode).toBeNull()
  expect(next.stdout).toBe('')
  holder.process.stdin?.end('\n')
  expect(await holder.end()).toBe(6)
  expect(holder.stderr).toBe('')
  expect(await next.end()).toBe(7)
  expect((await run(['run', 'b', '--wait', '0', '--', 'true'], { url })).code).toBe(75)
  expect((await run(['release', lease.trim()], { url })).code).toBe(0)
}, 60_000)
