import { execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { alive, dies, endAll, holdfast, isFree, lockServer, program, run, Running, sh } from './cli.ts'

let server: Awaited<ReturnType<typeof lockServer>>
let url = ''
beforeAll(async () => {
  server = await lockServer()
  ;({ url } = server)
})
afterAll(() => server.kill('SIGKILL'))
afterEach(endAll)

/** The process ids that a command has printed as `pid N`. */
async function pids(running: Running, count: number): Promise<readonly number[]> {
  const said = await running.says(new RegExp(`(pid \\d+\\n[^]*){${count}}`))
  return [...said.matchAll(/^pid (\d+)$/gm)].map(([, pid]) => Number(pid))
}

const stateOf = (pid: number): string => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0] ?? ''
const childrenOf = (pid: number, name: string): readonly number[] =>
  execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .flatMap((match) =>
      Number(match?.[2]) === pid && match?.[3]?.includes(name) === true ? [Number(match[1])] : [],
    )

const LINUX = process.platform === 'linux'
/** A command that has a child of its own, and on Linux one in a group of its own, as `timeout` makes it; all print their process ids. */
const FAMILY = sh(
  `${LINUX ? "timeout 60 sh -c 'echo pid $$; exec sleep 60' &" : ''} echo pid $$; sh -c 'echo pid $$; exec sleep 60'; exit`,
)
const FAMILY_SIZE = LINUX ? 3 : 2

describe('holdfast run and signals', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const)(
    'passes %s on to the command, which decides what becomes of it',
    async (signal) => {
      const script = `trap 'echo caught; exit 42' ${signal.slice(3)}; echo ready; while :; do sleep 0.02; done`
      const running = holdfast(['run', 'signals', ...sh(script)], { url })
      await running.says('ready')
      running.kill(signal)
      await running.says('caught')
      expect(await running.end()).toBe(42)
    },
  )

  it.each(['SIGINT', 'SIGTERM', 'SIGUSR2'] as const)(
    'ends with the code of the command if %s comes while a silent store has yet to say that the lock is free',
    async (signal) => {
      const silent = await lockServer()
      try {
        const running = holdfast(['run', 'silent', ...sh('echo pid $$; read line; exit 3')], silent)
        const [command = 0] = await pids(running, 1)
        silent.kill('SIGSTOP')
        running.process.stdin?.end('\n')
        await dies(command)
        const again = setInterval(() => running.kill(signal), 20)
        const code = await running.end()
        clearInterval(again)
        expect(code).toBe(3)
        expect(running.stderr).toContain('"silent" ends by itself within')
      } finally {
        silent.kill('SIGKILL')
      }
    },
  )

  it('reaches everything that the command has started', async () => {
    const running = holdfast(['run', 'family', ...FAMILY], { url })
    const family = await pids(running, FAMILY_SIZE)
    running.kill('SIGTERM')
    expect(await running.end()).toBe(143)
    for (const pid of family) await dies(pid)
  })

  it('ends what a command leaves behind before it releases the lock', async () => {
    const running = holdfast(['run', 'left', ...sh('sleep 60 & echo pid $!; exit 3')], { url })
    const [left = 0] = await pids(running, 1)
    expect(await running.end()).toBe(3)
    expect(alive(left)).toBe(false)
    expect(running.stderr).toContain('left processes behind')
  })

  it.runIf(LINUX).each(['SIGTERM', 'SIGKILL'] as const)(
    'ends what it has left in a group of its own, too, where that ends by %s',
    async (by) => {
      const script = `${by === 'SIGKILL' ? "trap '' TERM;" : ''} timeout 60 sh -c 'echo pid $$; exec sleep 60' & read -r _`
      const running = holdfast(['run', 'apart', '--grace', '200ms', ...sh(script)], { url })
      const [left = 0] = await pids(running, 1)
      running.process.stdin?.end('\n')
      expect(await running.end()).toBe(0)
      expect(alive(left) && stateOf(left) !== 'Z').toBe(false)
    },
  )

  it('kills after --grace what does not want to end', async () => {
    const stubborn = `sh -c 'trap "" TERM; echo pid $$; while :; do sleep 0.05; done' & sleep 0.3`
    const running = holdfast(['run', 'stubborn', '--grace', '200ms', ...sh(stubborn)], { url })
    const [left = 0] = await pids(running, 1)
    expect(await running.end()).toBe(0)
    await dies(left)
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const)(
    'leaves the queue when %s ends its wait',
    async (signal) => {
      const holder = holdfast(['run', `wait-${signal}`, ...sh('echo in; sleep 60')], { url })
      await holder.says('in')
      const waiter = holdfast(['run', `wait-${signal}`, '-v', '--', 'echo', 'ran'], { url })
      const waiting = async (): Promise<number> => {
        const { stdout } = await run(['inspect', `wait-${signal}`, '--json'], { url })
        return (JSON.parse(stdout) as { waiters: unknown[] }).waiters.length
      }
      await vi.waitUntil(async () => (await waiting()) === 1, { timeout: 10_000 })
      waiter.kill(signal)
      expect(await waiter.end()).toBe({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGUSR2: 140 }[signal])
      expect(waiter.stdout).toBe('')
      expect(await waiting()).toBe(0)
    },
  )
})

describe('holdfast run that is killed', () => {
  it('takes the command and all its children along', async () => {
    const running = holdfast(['run', 'killed', ...FAMILY], { url })
    const family = await pids(running, FAMILY_SIZE)
    running.kill('SIGKILL')
    for (const pid of family) await dies(pid)
    // Nobody has released the lock: it stays until its ttl is over.
    expect(await isFree('killed', url)).toBe(false)
  })

  it('does so even if its guard was killed before: there is a new one', async () => {
    const running = holdfast(['run', 'guarded', ...FAMILY], { url })
    const family = await pids(running, FAMILY_SIZE)
    const [guard = 0] = childrenOf(running.pid, 'holdfast-guard')
    process.kill(guard, 'SIGKILL')
    await vi.waitUntil(() => childrenOf(running.pid, 'holdfast-guard').some((pid) => pid !== guard), {
      timeout: 15_000,
    })
    expect(family.every(alive)).toBe(true)
    running.kill('SIGKILL')
    for (const pid of family) await dies(pid)
  })

  it('goes on if its guard was killed: the fuse of the dead one does not end the command', async () => {
    const running = holdfast(['run', 'fuse', '--ttl', '60s', ...FAMILY], { url })
    const family = await pids(running, FAMILY_SIZE)
    const [guard = 0] = childrenOf(running.pid, 'holdfast-guard')
    const fuses = await vi.waitUntil(
      () => {
        const found = childrenOf(guard, 'holdfast-guard')
        return found.length > 0 && found
      },
      { timeout: 15_000 },
    )
    process.kill(guard, 'SIGKILL')
    for (const fuse of fuses) await dies(fuse)
    expect(family.every(alive)).toBe(true)
  })

  it.skipIf(process.platform !== 'linux')(
    'does so even if it had no time to tell its guard what it started',
    async () => {
      const guard = JSON.stringify(new URL('guard.js', pathToFileURL(program)))
      const code = `
      import { spawn } from 'node:child_process'
      import { Guard } from ${guard}
      const { mark: [name, value] } = new Guard(null)
      const { pid } = spawn('sleep', ['60'], { detached: true, stdio: 'ignore', env: { ...process.env, [name]: value } })
      console.log('pid ' + pid)
      setInterval(() => {}, 1000)`
      const running = new Running(spawn(process.execPath, ['--input-type=module', '--eval', code]))
      const [pid = 0] = await pids(running, 1)
      expect(alive(pid)).toBe(true)
      running.kill('SIGKILL')
      await dies(pid)
    },
  )

  it('leaves no guard behind, neither then nor when all goes well', async () => {
    const running = holdfast(['run', 'no-guard', ...FAMILY], { url })
    await pids(running, FAMILY_SIZE)
    const [guard = 0] = childrenOf(running.pid, 'holdfast-guard')
    const fuses = childrenOf(guard, 'holdfast-guard')
    running.kill('SIGTERM')
    await running.end()
    for (const pid of [guard, ...fuses]) await dies(pid)
    expect(fuses).toHaveLength(1)
  })
})

const PATIENT = { timeout: 15_000, interval: 5 }

/**
 * As a job of somebody who could continue it: otherwise the system ignores a Ctrl-Z. Its own process id comes first. Not a
 * shell with job control: what was stopped before it is waited for has ended for that, with 147.
 */
const JOB = `
  $| = 1;
  my $pid = fork;
  if (!$pid) { setpgrp(0, 0); exec @ARGV; }
  print "job $pid\n";
  waitpid($pid, 0);
  exit($? & 127 ? 128 + ($? & 127) : $? >> 8);
`

async function job(
  args: readonly string[],
): Promise<{ running: Running; send: (signal: NodeJS.Signals) => void; pid: number }> {
  const child = spawn('perl', ['-e', JOB, process.execPath, program, ...args], {
    env: { ...process.env, HOLDFAST_URL: url },
    stdio: 'pipe',
  })
  const running = new Running(child)
  const pid = Number(/^job (\d+)$/m.exec(await running.says(/^job \d+$/m))?.[1])
  return { running, pid, send: (signal) => void process.kill(pid, signal) }
}

describe.skipIf(process.platform !== 'linux')('holdfast run that is stopped', () => {
  it('with Ctrl-Z stops the command too, and both go on together', async () => {
    // One that does not start others: stopped in the middle of that, a shell would seem to wait for the disk.
    const { running, pid: own, send } = await job(['run', 'ctrl-z', ...sh('echo pid $$; exec sleep 60')])
    const [pid = 0] = await pids(running, 1)
    // Twice: it listens again after the first time.
    for (let time = 1; time <= 2; time++) {
      send('SIGTSTP')
      await vi.waitUntil(() => stateOf(pid) === 'T' && stateOf(own) === 'T', PATIENT)
      send('SIGCONT')
      await vi.waitUntil(() => stateOf(pid) !== 'T' && stateOf(own) !== 'T', PATIENT)
    }
    send('SIGTERM')
    expect(await running.end()).toBe(143)
  })

  it('with Ctrl-Z where nobody could continue it goes on, and so does the command', async () => {
    // The leader of a session, as behind `ssh -t`.
    const running = new Running(
      spawn(
        process.execPath,
        [program, 'run', 'alone', ...sh('echo pid $$; while :; do sleep 0.02; echo on; done')],
        {
          env: { ...process.env, HOLDFAST_URL: url },
          detached: true,
        },
      ),
    )
    await pids(running, 1)
    running.kill('SIGTSTP')
    // What it says from now on it says after that.
    await new Promise((resolve) => void setTimeout(resolve, 100))
    const length = running.stdout.length
    await vi.waitUntil(() => running.stdout.length > length + 10, PATIENT)
    expect(stateOf(running.pid)).not.toBe('T')
    running.kill('SIGTERM')
    expect(await running.end()).toBe(143)
  })

  it.each(['SIGTSTP', 'SIGSTOP'] as const)(
    'by %s for longer than its lease loses the command before the lock moves',
    async (signal) => {
      const name = `stopped-${signal}`
      // Not shorter: the guard has a fiftieth of it to kill the command, on a machine that may be busy.
      const { running, send } = await job(['run', name, '--ttl', '10s', ...sh('echo pid $$; exec sleep 60')])
      const [pid = 0] = await pids(running, 1)
      send(signal)
      const next = holdfast(
        ['run', name, '--wait', '30s', '--', 'ps', '-o', 'pid=,state=', '-p', String(pid)],
        { url },
      )
      // It runs only once the lock has moved: then there must be nothing left, or a body at most.
      await next.end()
      expect(next.stdout.trim()).toMatch(/^(\d+ Z)?$/)
      send('SIGCONT')
      expect(await running.end()).toBe(79)
      expect(running.stderr).toContain('the lock was lost')
    },
  )
})
