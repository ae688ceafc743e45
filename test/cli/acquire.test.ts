import { spawn, spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { isWrapper } from '../../src/cli/keeper/script-process.ts'
import { dies, endAll, holdfast, isFree, lockServer, program, run, Running, tempFolder } from './cli.ts'

// Its own, so that keepers of other runs are not in the way.
const runtime = tempFolder()
const env = { XDG_RUNTIME_DIR: runtime }

let server: Awaited<ReturnType<typeof lockServer>>
let url = ''
beforeAll(async () => {
  server = await lockServer()
  ;({ url } = server)
})
afterAll(() => server.kill('SIGKILL'))
afterEach(endAll)

const parent = ['--parent', String(process.pid)]
const sockets = (): readonly string[] =>
  existsSync(join(runtime, 'holdfast')) ? readdirSync(join(runtime, 'holdfast')) : []
const becomesFree = (name: string): Promise<boolean> =>
  vi.waitUntil(() => isFree(name, url), { timeout: 10_000 })

/** A script that calls holdfast as `$HOLDFAST`, and is given its lines on stdin. */
function script(shell: string, text: string): Running {
  const HOLDFAST = `${process.execPath} ${program}`
  return new Running(
    spawn(shell, ['-c', text], {
      env: { ...process.env, ...env, HOLDFAST_URL: url, HOLDFAST },
      stdio: 'pipe',
    }),
  )
}

describe('holdfast acquire', () => {
  it('prints what it took, and keeps it until it is released', async () => {
    const { code, stdout } = await run(['acquire', 'kept', '--ttl', '1s', ...parent], { url, env })
    expect(code).toBe(0)
    const taken = JSON.parse(stdout) as Record<string, string>
    expect(taken['name']).toBe('kept')
    expect(taken['lease']).toMatch(/^[0-9a-f]{16}$/)
    expect(taken['token']).toMatch(/^\d+$/)
    expect(Number(taken['expires'])).toBeGreaterThan(Date.now())
    // Longer than its ttl: somebody renews it.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    expect(await isFree('kept', url)).toBe(false)

    expect(await run(['release', taken['lease'] ?? ''], { env })).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await isFree('kept', url)).toBe(true)
    await vi.waitUntil(() => sockets().length === 0)
  })

  it('prints one thing alone for a script', async () => {
    const { stdout } = await run(['acquire', 'alone', '--print', 'lease', ...parent], { url, env })
    expect(stdout).toMatch(/^[0-9a-f]{16}\n$/)
    expect((await run(['release', stdout.trim()], { env })).code).toBe(0)
    const wrong = await run(['acquire', 'alone', '--print', 'leese', ...parent], { url, env })
    expect([wrong.code, wrong.stdout]).toEqual([64, ''])
    expect(await isFree('alone', url)).toBe(true)
  })

  it('may be released by name, if there is only one', async () => {
    await run(['acquire', 'named', ...parent], { url, env })
    expect((await run(['release', 'named', '--json'], { env })).stdout).toContain('"outcome":"released"')
    await run(['acquire', 'many', '--of', '2', ...parent], { url, env })
    await run(['acquire', 'many', '--of', '2', ...parent], { url, env })
    const { code, stderr } = await run(['release', 'many'], { env })
    expect(code).toBe(64)
    const leases = /say which: (.*)/.exec(stderr)?.[1]?.split(', ') ?? []
    expect(leases).toHaveLength(2)
    for (const lease of leases) expect((await run(['release', lease], { env })).code).toBe(0)
  })

  it('may be released by a name that looks like a lease', async () => {
    const name = '0123456789abcdef'
    await run(['acquire', name, ...parent], { url, env })
    expect((await run(['release', name], { env })).code).toBe(0)
    const { code, stdout } = await run(['release', name, '--json'], { env })
    expect([code, stdout]).toEqual([79, `{"lease":"${name}","outcome":"not-held"}\n`])
  })

  it('takes no lock where its socket would have too long a path, which Node cuts off', async () => {
    const folder = join(tempFolder(), 'x'.repeat(80))
    mkdirSync(folder)
    const long = { XDG_RUNTIME_DIR: folder }
    const { code, stderr } = await run(['acquire', 'cut off', ...parent], { url, env: long })
    expect([code, stderr]).toEqual([71, expect.stringContaining('has too long a name for sockets')])
    expect(await isFree('cut off', url)).toBe(true)
    expect(readdirSync(folder, { recursive: true })).toEqual(['holdfast'])
  })

  it.runIf(process.platform === 'linux')('says at once where nothing can be made', async () => {
    const { code, stderr } = await run(['acquire', 'x', ...parent], {
      url,
      env: { XDG_RUNTIME_DIR: '/proc' },
    })
    expect([code, stderr]).toEqual([71, expect.stringContaining('/proc/holdfast')])
  })

  it('listens where nobody else can enter', async () => {
    await run(['acquire', 'private', ...parent], { url, env })
    expect(statSync(join(runtime, 'holdfast')).mode & 0o777).toBe(0o700)
    await run(['release', 'private'], { env })
  })

  it('answers 75 when the lock is not free, and leaves nothing behind', async () => {
    const holder = holdfast(['run', 'busy', '--', 'sh', '-c', 'echo in; sleep 60'], { url })
    await holder.says('in')
    const { code, stdout } = await run(['acquire', 'busy', '--wait', '200ms', ...parent], { url, env })
    expect({ code, stdout }).toEqual({ code: 75, stdout: '' })
    expect(sockets()).toEqual([])
  })

  it.each(['SIGINT', 'SIGKILL'] as const)(
    'that ends by %s while it waits leaves the queue',
    async (signal) => {
      const name = `left-${signal}`
      const holder = holdfast(['run', name, '--', 'sh', '-c', 'echo in; sleep 60'], { url })
      await holder.says('in')
      const waiter = holdfast(['acquire', name, ...parent], { url, env })
      const waiting = async (): Promise<boolean> =>
        (await run(['inspect', name, '--json'], { url })).stdout.includes('"waiters":[{')
      await vi.waitUntil(waiting, { timeout: 10_000 })
      waiter.kill(signal)
      expect(await waiter.end()).toBe(signal === 'SIGINT' ? 130 : 'SIGKILL')
      await vi.waitUntil(async () => !(await waiting()), { timeout: 5000 })
    },
  )

  it('that is interrupted does not wait for a server that stands still', async () => {
    const still = await lockServer()
    try {
      const holder = holdfast(['run', 'still', '--', 'sh', '-c', 'echo in; sleep 60'], { url: still.url })
      await holder.says('in')
      const waiter = holdfast(['acquire', 'still', '--wait', 'forever', ...parent], { url: still.url, env })
      const waiting = async (): Promise<boolean> =>
        (await run(['inspect', 'still', '--json'], { url: still.url })).stdout.includes('"waiters":[{')
      await vi.waitUntil(waiting, { timeout: 10_000 })
      still.kill('SIGSTOP')
      const began = performance.now()
      waiter.kill('SIGINT')
      expect(await waiter.end()).toBe(130)
      // The keeper waits for two seconds.
      expect(performance.now() - began).toBeLessThan(1500)
    } finally {
      still.kill('SIGKILL')
    }
  })

  it.runIf(process.platform === 'linux')(
    'whose answer cannot be written has not taken the lock',
    async () => {
      const full = openSync('/dev/full', 'w')
      const take = (stdout: number | 'pipe'): Running =>
        new Running(
          spawn(process.execPath, [program, 'acquire', 'unwritten', ...parent], {
            env: { ...process.env, ...env, HOLDFAST_URL: url },
            stdio: ['ignore', stdout, 'pipe'],
          }),
        )
      const onFullDisk = take(full)
      closeSync(full)
      expect(await onFullDisk.end()).toBe(71)
      await becomesFree('unwritten')
      const unread = take('pipe')
      unread.process.stdout?.destroy()
      expect(await unread.end()).toBe(71)
      await becomesFree('unwritten')
    },
  )

  it('whose answer nobody took has not taken the lock', async () => {
    const keeper = new Running(
      spawn(process.execPath, [join(dirname(program), 'keeper', 'main.js')], {
        env: { ...process.env, ...env },
      }),
    )
    const wish = { name: 'unheard', mode: 'mutex', permits: 1, capacity: 1, wait: null, ttl: 60_000 }
    const script = { pid: process.pid, began: '' }
    keeper.process.stdin?.write(
      `${JSON.stringify({ address: { url, shown: url }, wish, script, lease: '00112233aabbccdd' })}\n`,
    )
    await keeper.says('"kind":"held"')
    expect(await isFree('unheard', url)).toBe(false)
    keeper.process.stdin?.end()
    expect(await keeper.end()).toBe(0)
    expect(await isFree('unheard', url)).toBe(true)
    expect(sockets()).toEqual([])
  })

  /** A keeper whose `acquire` has ended well. */
  async function keeperOf(name: string, pid: number | undefined): Promise<Running> {
    const keeper = new Running(
      spawn(process.execPath, [join(dirname(program), 'keeper', 'main.js')], {
        env: { ...process.env, ...env },
      }),
    )
    const order = {
      address: { url, shown: url },
      wish: { name, mode: 'mutex', permits: 1, capacity: 1, wait: null, ttl: 60_000 },
      script: { pid, began: '' },
      lease: '00112233aabbccee',
    }
    keeper.process.stdin?.write(`${JSON.stringify(order)}\n`)
    await keeper.says('"kind":"held"')
    keeper.process.stdin?.write('keep\n')
    return keeper
  }

  it('is kept for a script that takes its time to end when both get SIGTERM (systemctl stop)', async () => {
    const script = spawn('sleep', ['60'])
    const keeper = await keeperOf('both', script.pid)
    keeper.kill('SIGTERM')
    expect(await isFree('both', url)).toBe(false)
    expect(keeper.process.signalCode).toBe(null)
    script.kill()
    expect(await keeper.end()).toBe(0)
    expect(await isFree('both', url)).toBe(true)
  })

  it('is given back at SIGTERM where process 1 has called, as for ExecStart= of a service', async () => {
    const keeper = await keeperOf('service', 1)
    keeper.kill('SIGTERM')
    expect(await keeper.end()).toBe(0)
    expect(await isFree('service', url)).toBe(true)
  })

  // Its first child is process 1, and a stranger's: as with `docker exec`.
  const apart = ['--pid', 'sh', '-c', '"$@"; exit $?', 'sh']
  it.skipIf(spawnSync('unshare', [...apart, 'true']).status !== 0)(
    'is refused where nobody could see that its script has ended (docker exec)',
    async () => {
      const called = new Running(
        spawn('unshare', [...apart, process.execPath, program, 'acquire', 'outside'], {
          env: { ...process.env, ...env, HOLDFAST_URL: url },
        }),
      )
      expect([await called.end(), called.stderr]).toEqual([64, expect.stringContaining('--parent PID')])
      expect(await isFree('outside', url)).toBe(true)
    },
  )

  it('tells at the release that the lock was lost meanwhile', async () => {
    await run(['acquire', 'robbed', ...parent], { url, env })
    await run(['release', '--force', 'robbed', '--reason', 'test'], { url, env })
    const { code, stderr } = await run(['release', 'robbed'], { env })
    expect(stderr).toContain('lost before it was released')
    expect(code).toBe(79)
  })

  it('says so when there is nothing to release', async () => {
    expect((await run(['release', 'nothing'], { env })).code).toBe(79)
    expect((await run(['release', '0123456789abcdef'], { env })).code).toBe(79)
  })
})

describe('a script that takes a lock', () => {
  it.each(['sh', 'bash'])('in %s keeps it until it ends, even from a subshell', async (shell) => {
    const name = `script-${shell}`
    const running = script(
      shell,
      `lease=$($HOLDFAST acquire ${name} | cat | cat); echo "got $lease"; read -r _; exit 0`,
    )
    await running.says('got {')
    // Longer than the keeper takes to see that a subshell is gone.
    await new Promise((resolve) => setTimeout(resolve, 1200))
    expect(await isFree(name, url)).toBe(false)
    running.process.stdin?.end('\n')
    expect(await running.end()).toBe(0)
    await becomesFree(name)
  })

  it.each(['timeout 60 $HOLDFAST', 'npx --no-install holdfast', 'timeout 60 npx --no-install holdfast'])(
    'with %s keeps it until it ends',
    async (command) => {
      const project = tempFolder()
      mkdirSync(join(project, 'node_modules/.bin'), { recursive: true })
      writeFileSync(
        join(project, 'node_modules/.bin/holdfast'),
        `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`,
        { mode: 0o755 },
      )
      writeFileSync(join(project, 'package.json'), '{"name":"project","version":"1.0.0"}')
      const name = `wrapped-${command.length}`
      const running = script(
        'sh',
        `cd ${project}; lease=$(${command} acquire ${name} --print lease) || exit; echo "got $lease"; read -r _; exit 0`,
      )
      await running.says('got ')
      await new Promise((resolve) => setTimeout(resolve, 1500))
      expect(await isFree(name, url)).toBe(false)
      running.process.stdin?.end('\n')
      expect(await running.end()).toBe(0)
      await becomesFree(name)
    },
  )

  it.each(['timeout 60 $HOLDFAST', '$HOLDFAST', 'A=1 $HOLDFAST'])(
    'that is a program, and asks a shell for %s, keeps it until it ends',
    async (command) => {
      const asked = `execSync('${command} acquire asked --print lease 2>&1', { encoding: 'utf8' })`
      const text = `import { execSync } from 'node:child_process'; console.log('got', ${asked}); process.stdin.resume()`
      const folder = tempFolder()
      const HOLDFAST = join(folder, 'holdfast')
      writeFileSync(HOLDFAST, `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, { mode: 0o755 })
      const file = join(folder, 'deploy.mjs')
      writeFileSync(file, text.replaceAll('$HOLDFAST', HOLDFAST))
      const running = script('sh', `exec ${process.execPath} ${file}`)
      await running.says('got ')
      await new Promise((resolve) => setTimeout(resolve, 1200))
      expect(await isFree('asked', url)).toBe(false)
      running.process.stdin?.end('\n')
      expect(await running.end()).toBe(0)
      await becomesFree('asked')
    },
  )

  it.each([
    [['timeout', '60', 'holdfast', 'acquire', 'x'], true],
    [['/usr/bin/sudo', '-u', 'deploy', 'holdfast', 'acquire', 'x'], true],
    [['npm exec holdfast acquire x'], true],
    [['node', '/usr/lib/node_modules/npm/bin/npx-cli.js', 'holdfast', 'acquire', 'x'], true],
    [['node', '/opt/yarn/bin/yarn.js', 'holdfast', 'acquire', 'x'], true],
    [['/bin/sh', '-c', 'holdfast acquire x'], true],
    [['/bin/sh', '-c', '"/p/node_modules/.bin/holdfast" "acquire" x'], true],
    [['/bin/sh', '-c', 'npx holdfast acquire x'], true],
    [['/bin/sh', '-c', 'npx -y holdfast@latest acquire x'], true],
    [['/bin/sh', '-c', 'timeout 60 ./bin/holdfast acquire x --print lease 2>&1'], true],
    [['/bin/sh', '-c', 'HOLDFAST_URL=redis://localhost holdfast acquire x'], true],
    [['/bin/sh', '-c', 'holdfast acquire x; make deploy'], false],
    [['/bin/sh', '-c', 'npx holdfast acquire x 2>&1 && make deploy'], false],
    [['/bin/sh', '-c', 'npx holdfast acquire x &'], false],
    [['/bin/sh', '-c', '. ./deploy.sh'], false],
    [['/bin/sh', '-c', '. ./with-holdfast deploy'], false],
    [['/bin/bash', '-ec', 'lease=$(holdfast acquire x) || exit; make'], false],
    [['/bin/sh', '-c', 'holdfast acquire x && make deploy'], false],
    [['/bin/sh', './deploy.sh'], false],
    [['node', 'deploy.js'], false],
    [['make', 'deploy'], false],
    [[''], false],
  ])('is not looked for in what only runs another program: %j %s', (args, wrapper) => {
    expect(isWrapper(args)).toBe(wrapper)
  })

  const container = ['--pid', '--fork', '--mount-proc']
  describe.skipIf(spawnSync('unshare', [...container, 'true']).status !== 0)('of a container', () => {
    it.each([
      ['that is its process 1', ['bash', '-c', '$LOOK; exit']],
      ['that is its process 1, behind a pipe', ['bash', '-c', 'script=$($LOOK | cat); echo "$script"']],
      ['that is its process 1, by another program', ['sh', '-c', 'timeout 60 $LOOK; exit']],
    ])('is found: one %s', (_, words) => {
      expect(looked(words)).toBe('1\n')
    })

    it('is not process 1 because that takes in orphans', () => {
      const orphan = 'setsid timeout 60 sh -c "read -r _ <go; exec $LOOK >found"'
      const text = `cd ${tempFolder()}; mkfifo go found; (${orphan} &); echo >go; cat found`
      expect(looked(['bash', '-c', text])).toMatch(/^([2-9]|\d\d+)\n$/)
    })

    it('is not there when all that called is a program that only runs it', () => {
      expect(looked(['timeout', '60', 'sh', '-c', 'exec $LOOK'])).toBe('0\n')
    })

    /** What it takes for the script. */
    function looked(words: readonly string[]): string {
      const file = join(tempFolder(), 'look.mjs')
      const from = JSON.stringify(join(dirname(program), 'keeper/script-process.js'))
      writeFileSync(file, `import { scriptOf } from ${from}\nconsole.log(scriptOf(process.ppid))`)
      const LOOK = `${process.execPath} ${file}`
      return spawnSync('unshare', [...container, ...words], {
        env: { ...process.env, LOOK },
        encoding: 'utf8',
      }).stdout
    }
  })

  it('gives it back when it is killed', async () => {
    const running = script('sh', `$HOLDFAST acquire orphan; echo done; read -r _`)
    await running.says('done')
    expect(await isFree('orphan', url)).toBe(false)
    running.kill('SIGKILL')
    await dies(running.pid)
    await becomesFree('orphan')
    await vi.waitUntil(() => sockets().length === 0, { timeout: 5000 })
  })

  it('may release by itself, and go on', async () => {
    const running = script(
      'sh',
      `$HOLDFAST acquire self && echo working && $HOLDFAST release self && echo released; read -r _`,
    )
    await running.says('released')
    expect(await isFree('self', url)).toBe(true)
    running.process.stdin?.end('\n')
    await running.end()
  })
})
