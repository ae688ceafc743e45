import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { afterEach, expect, it, vi } from 'vitest'
import { Guard } from '../../../src/cli/guard.ts'

/** A command as holdfast starts it. */
function command(guard: Guard): ChildProcess {
  const [name, value] = guard.mark
  return spawn('sleep', ['60'], {
    detached: true,
    stdio: 'ignore',
    env: { PATH: '/usr/bin:/bin', [name]: value },
  })
}

it.skipIf(process.platform !== 'linux')(
  'kills in time what was started, though holdfast was stopped before it could say its group',
  async () => {
    const guard = new Guard(100)
    const child = command(guard)
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    guard.off()
  },
)

it('goes by the last word', async () => {
  const guard = new Guard(100)
  const child = command(guard)
  guard.protect(child.pid ?? 0)
  guard.fuse(60_000)
  await new Promise((resolve) => void setTimeout(resolve, 300))
  expect([child.exitCode, child.signalCode]).toEqual([null, null])
  guard.fuse(1)
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
  guard.off()
})

it.skipIf(process.platform !== 'linux')(
  'kills all of the session, also while it starts others in groups of their own',
  async () => {
    const guard = new Guard(null)
    const restless = 'timeout 60 bash -c "set -m; while :; do sleep 60 & sleep 0.01; done"'
    const child = spawn('sh', ['-c', `${`${restless} & `.repeat(12)} wait`], {
      detached: true,
      stdio: 'ignore',
    })
    const session = child.pid ?? 0
    guard.protect(session)
    await vi.waitUntil(() => running(session) > 80, { timeout: 10_000 })
    guard.fuse(1)
    await vi.waitFor(() => expect(running(session)).toBe(0), { timeout: 5000 })
    guard.off()
  },
)

function running(session: number): number {
  const text = spawnSync('ps', ['-e', '-o', 'sid=,stat='], { encoding: 'utf8' }).stdout
  return text.split('\n').filter((line) => new RegExp(`^ *${session} [^ZX]`).test(line)).length
}

afterEach(() => vi.unstubAllEnvs())

it.skipIf(process.platform !== 'linux')('finds its programs where the user does (NixOS)', () => {
  vi.stubEnv('PATH', '/run/current-system/sw/bin')
  const guard = new Guard(null)
  const { process: shell } = guard as unknown as { readonly process: ChildProcess }
  const environment = readFileSync(`/proc/${shell.pid}/environ`, 'utf8').split('\0')
  guard.off()
  expect(environment).toContain('PATH=/usr/bin:/bin:/run/current-system/sw/bin')
})
