import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, redis } from '../../scripts/services.mjs'
import { alive, dies, endAll, holdfast, lockServer, run, sh } from './cli.ts'

let server: Awaited<ReturnType<typeof lockServer>>
let url = ''
beforeAll(async () => {
  server = await lockServer()
  ;({ url } = server)
})
afterAll(() => server.kill('SIGKILL'))
afterEach(async () => {
  server.kill('SIGCONT')
  await endAll()
})

const TTL = 3000
const pidIn = (text: string): number => Number(/^pid (\d+)$/m.exec(text)?.[1])

describe('holdfast run whose store falls silent', () => {
  it('asks the command to end, and kills it before the lease is over', async () => {
    const script = `trap 'echo asked' TERM; echo pid $$; while :; do sleep 0.02; done`
    const running = holdfast(['run', 'silent', '--ttl', `${TTL}ms`, '--grace', '600ms', ...sh(script)], {
      url,
    })
    const pid = pidIn(await running.says(/pid \d+/))
    server.kill('SIGSTOP')
    // The lease cannot have been renewed after this moment.
    const silent = performance.now()
    await running.says('asked')
    const asked = performance.now() - silent
    expect(alive(pid)).toBe(true)
    await dies(pid)
    expect(performance.now() - silent).toBeLessThan(TTL)
    expect(performance.now() - silent - asked).toBeGreaterThan(300)
    expect(await running.end()).toBe(79)
    expect(running.stderr).toMatch(/cannot be renewed .* asking the command to end\n.*killing the command/s)
  })

  it('is content with a command that ends well when asked', async () => {
    const script = `trap 'echo asked; exit 0' TERM; echo pid $$; while :; do sleep 0.02; done`
    const running = holdfast(['run', 'polite', '--ttl', `${TTL}ms`, ...sh(script)], { url })
    await running.says(/pid \d+/)
    server.kill('SIGSTOP')
    await running.says('asked')
    server.kill('SIGCONT')
    expect(await running.end()).toBe(0)
  })

  it('only asks with --on-lost signal, and says in its exit code that the lock was lost', async () => {
    const script = `trap '' TERM; echo pid $$; read -r _; exit 0`
    const running = holdfast(['run', 'asks', '--ttl', '1500ms', '--on-lost', 'signal', ...sh(script)], {
      url,
    })
    const pid = pidIn(await running.says(/pid \d+/))
    server.kill('SIGSTOP')
    await running.says('asking the command to end')
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(alive(pid)).toBe(true)
    server.kill('SIGCONT')
    running.process.stdin?.end('\n')
    expect(await running.end()).toBe(79)
  })

  it('does nothing with --on-lost ignore but say so, and passes the exit code on', async () => {
    const running = holdfast(
      ['run', 'ignores', '--ttl', '1500ms', '--on-lost', 'ignore', ...sh('echo pid $$; read -r _; exit 5')],
      { url },
    )
    await running.says(/pid \d+/)
    server.kill('SIGSTOP')
    await running.says('goes on without it')
    server.kill('SIGCONT')
    running.process.stdin?.end('\n')
    expect(await running.end()).toBe(5)
  })

  it('rides out a silence that is shorter than the lease', async () => {
    const running = holdfast(['run', 'short', '--ttl', `${TTL}ms`, ...sh('echo pid $$; read -r _; exit 6')], {
      url,
    })
    await running.says(/pid \d+/)
    server.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 800))
    server.kill('SIGCONT')
    await new Promise((resolve) => setTimeout(resolve, TTL))
    running.process.stdin?.end('\n')
    expect(await running.end()).toBe(6)
    expect(running.stderr).toBe('')
  })
})

describe('a lock that is taken away by force', () => {
  it('kills the command at once, and the next one gets a larger token', async () => {
    const running = holdfast(
      ['run', 'forced', ...sh('echo pid $$; echo "token $HOLDFAST_TOKEN"; exec sleep 60')],
      { url },
    )
    const said = await running.says(/token \d+/)
    const next = holdfast(['run', 'forced', ...sh('echo "token $HOLDFAST_TOKEN"')], { url })
    await vi.waitUntil(
      async () => (await run(['inspect', 'forced', '--json'], { url })).stdout.includes('"waiters":[{'),
      {
        timeout: 10_000,
      },
    )
    const force = await run(['release', '--force', 'forced', '--reason', 'it hangs', '--json'], { url })
    const token = /token (\d+)/.exec(said)?.[1] ?? ''
    expect(JSON.parse(force.stdout)).toMatchObject({ name: 'forced', reason: 'it hangs', taken: [{ token }] })
    await dies(pidIn(said), 1000)
    expect(await running.end()).toBe(79)
    expect(await next.end()).toBe(0)
    expect(BigInt(/token (\d+)/.exec(next.stdout)?.[1] ?? 0)).toBeGreaterThan(BigInt(token))
  })

  it.skipIf(!available('redis'))(
    'without a server is taken at the store, and the holder hears of it at its next renewal',
    async () => {
      await using store = await redis()
      const args = ['run', 'forced', '--ttl', '3s', ...sh('echo pid $$; exec sleep 60')]
      const running = holdfast(args, { url: store.url })
      const pid = pidIn(await running.says(/pid \d+/))
      const force = await run(['release', '--force', 'forced', '--reason', 'it hangs'], { url: store.url })
      expect(force.stdout).toMatch(/^Took "forced" away from \S+:\d+, token \d+\.\n$/)
      await dies(pid, 3000)
      expect(await running.end()).toBe(79)
    },
  )

  it('needs a reason, and says so when nobody holds it', async () => {
    expect((await run(['release', '--force', 'nobody'], { url })).code).toBe(64)
    const { code, stdout } = await run(['release', '--force', 'nobody', '--reason', 'x'], { url })
    expect(stdout).toContain('Nobody holds "nobody"')
    expect(code).toBe(0)
  })
})
