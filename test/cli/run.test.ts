import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

import { open } from 'holdfast'
import type { Holdfast } from 'holdfast'

import { endAll, holdfast, isFree, lockServer, program, run, sh, tempFolder } from './cli.ts'

let server: Awaited<ReturnType<typeof lockServer>>
let url = ''
beforeAll(async () => {
  server = await lockServer()
  ;({ url } = server)
})
afterAll(() => server.kill('SIGKILL'))
afterEach(endAll)

describe('holdfast run: the exit code', () => {
  it.each([0, 1, 7, 255])('is that of the command: %i', async (code) => {
    expect(await run(['run', 'code', ...sh(`exit ${code}`)], { url })).toMatchObject({ code, stderr: '' })
  })

  it('is 128 + signal for a command that was killed', async () => {
    expect((await run(['run', 'code', ...sh('kill -KILL $$')], { url })).code).toBe(137)
    expect((await run(['run', 'code', ...sh('kill -TERM $$')], { url })).code).toBe(143)
  })

  it.runIf(process.platform === 'linux')('is 64 for an argument that Node cannot pass on as it is', () => {
    const printed = (bytes: string): { status: number | null; stdout: string; stderr: string } => {
      // Node cannot make such arguments either.
      const script = `exec "$1" "$2" run code -- printf %s "$(printf '${bytes}')"`
      const { status, stdout, stderr } = spawnSync('sh', ['-c', script, 'sh', process.execPath, program], {
        env: { ...process.env, HOLDFAST_URL: url },
        encoding: 'utf8',
      })
      return { status, stdout, stderr }
    }
    const refused = printed('x\\377')
    expect([refused.status, refused.stdout]).toEqual([64, ''])
    expect(refused.stderr).toContain('not UTF-8')
    expect(printed('\\303\\251 \\357\\277\\275')).toEqual({ status: 0, stdout: 'é \u{fffd}', stderr: '' })
  })

  it('is 127 for a command that is not there, 126 for one that cannot be run, and the lock is free again', async () => {
    expect((await run(['run', 'code', '--', 'no-such-command'], { url })).code).toBe(127)
    const file = join(tempFolder(), 'file')
    writeFileSync(file, '', { mode: 0o600 })
    expect((await run(['run', 'code', '--', file], { url })).code).toBe(126)
    // No folder: that is told in another way than the rest.
    const below = await run(['run', 'code', '--', `${file}/below`], { url })
    expect(below).toMatchObject({ code: 126, stderr: `holdfast: ${file}/below: cannot be run (ENOTDIR)\n` })
    expect((await run(['run', 'code', '--', ''], { url })).code).toBe(64)
    expect(await isFree('code', url)).toBe(true)
  })

  it('is 75 when the lock is not had in time, or what -E says', async () => {
    const holder = holdfast(['run', 'busy', ...sh('echo in; sleep 30')], { url })
    await holder.says('in')
    const refused = await run(['run', 'busy', '--wait', '0', '--', 'echo', 'ran'], { url })
    expect(refused).toMatchObject({ code: 75, stdout: '' })
    expect(refused.stderr).toContain('"busy" is not free')
    expect((await run(['run', 'busy', '--wait', '300ms', '--', 'true'], { url })).code).toBe(75)
    expect(await run(['run', 'busy', '-w0', '-E', '0', '--', 'echo', 'ran'], { url })).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    })
  })

  it('is 69 when the store cannot be reached', async () => {
    const { code, stderr } = await run(['run', 'a', '--', 'true'], { url: 'holdfast://127.0.0.1:1' })
    expect(code).toBe(69)
    expect(stderr).toContain('127.0.0.1:1')
  })

  it.each([
    [['run', 'a', '--', 'true'], undefined, 'Which store?'],
    [['run', 'a'], 'x', 'Which command?'],
    [['run', '--', 'true'], 'x', 'needs more words'],
    [['run', 'a', '--wait', '5', '--', 'true'], 'x', '5s or 5ms'],
    [['run', 'a', '--on-lost', 'pray', '--', 'true'], 'x', 'kill, signal, ignore'],
    [['run', 'a', '--ttl', '2s', '--grace', '1500ms', '--', 'true'], 'x', 'at most half'],
    [['run', 'a', '-E', '256', '--', 'true'], 'x', '0 to 255'],
    [['run', 'a', '--', 'true'], 'nosql://host', 'Known: memory'],
    [['run', 'a', '--', 'true'], 'memory:', 'inside one process'],
    [['rnu'], 'x', 'There is no command "rnu"'],
  ])('is 64 for a command line that is wrong: %j at %s', async (args, at, message) => {
    const { code, stderr } = await run(args, { url: at === 'x' ? url : at })
    expect(stderr).toContain(message)
    expect(code).toBe(64)
  })

  it('is 64 for a name that is used with another capacity', async () => {
    const holder = holdfast(['run', 'capacity', '--of', '3', ...sh('echo in; sleep 30')], { url })
    await holder.says('in')
    const { code, stderr } = await run(['run', 'capacity', '--of', '4', '--', 'true'], { url })
    expect(stderr).toContain('capacity of 3, not 4')
    expect(code).toBe(64)
  })
})

describe('holdfast run: the command', () => {
  it('gets its arguments as they are, for there is no shell', async () => {
    const args = ['a b', '$HOME', '*', ';exit 3', '--', '--help', '']
    const { stdout } = await run(['run', 'args', '--', 'printf', '[%s]', ...args], { url })
    expect(stdout).toBe(args.map((arg) => `[${arg}]`).join(''))
  })

  it('reads what holdfast is given to read', async () => {
    expect((await run(['run', 'stdin', '--', 'cat'], { url, input: 'some\ninput' })).stdout).toBe(
      'some\ninput',
    )
  })

  it('knows its lock, its token and until when it is good', async () => {
    const before = Date.now()
    const read = async (): Promise<readonly string[]> => {
      const script = 'echo "$HOLDFAST_NAME $HOLDFAST_TOKEN $HOLDFAST_EXPIRES"'
      return (await run(['run', 'known', '--ttl', '10s', ...sh(script)], { url })).stdout.trim().split(' ')
    }
    const [name, token = '', expires] = await read()
    expect(name).toBe('known')
    expect(Number(expires)).toBeGreaterThan(before + 9000)
    expect(Number(expires)).toBeLessThan(Date.now() + 10_000)
    const [, next = ''] = await read()
    expect(BigInt(next)).toBeGreaterThan(BigInt(token))
  })

  it('leads a process group of its own', async () => {
    const { stdout } = await run(['run', 'group', ...sh('echo $$ $(ps -o pgid= -p $$)')], { url })
    const [pid, group] = stdout.trim().split(/\s+/)
    expect(group).toBe(pid)
  })

  it('runs alone: of many at once, none sees another', async () => {
    const counter = join(tempFolder(), 'counter')
    writeFileSync(counter, '0')
    const script = `n=$(cat ${counter}); sleep 0.02; echo $((n + 1)) > ${counter}`
    const all = await Promise.all(
      Array.from({ length: 6 }, () => run(['run', 'alone', ...sh(script)], { url })),
    )
    expect(all.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0])
    expect((await run(['run', 'alone', '--', 'cat', counter], { url })).stdout.trim()).toBe('6')
  })

  it('shares with --shared, and keeps out --write', async () => {
    const reader = holdfast(['run', 'book', '--shared', ...sh('echo in; sleep 30')], { url })
    await reader.says('in')
    expect((await run(['run', 'book', '-s', '-w0', '--', 'true'], { url })).code).toBe(0)
    expect((await run(['run', 'book', '-x', '-w0', '--', 'true'], { url })).code).toBe(75)
  })

  it('takes permits of a semaphore', async () => {
    const holder = holdfast(['run', 'gpu', '--permits', '2', '--of', '3', ...sh('echo in; sleep 30')], {
      url,
    })
    await holder.says('in')
    expect((await run(['run', 'gpu', '--of', '3', '-w0', '--', 'true'], { url })).code).toBe(0)
    expect(
      (await run(['run', 'gpu', '--permits', '2', '--of', '3', '-w0', '--', 'true'], { url })).code,
    ).toBe(75)
  })

  it('goes on though nobody reads any more what holdfast says', async () => {
    const running = holdfast(['run', '-v', 'unread', ...sh('sleep 0.5; echo done')], { url })
    running.process.stderr?.destroy()
    expect(await running.end()).toBe(0)
    expect(running.stdout).toBe('done\n')
  })

  it('says with -v what happens, on stderr alone', async () => {
    const { stdout, stderr } = await run(['run', 'talk', '-v', '--', 'echo', 'out'], { url })
    expect(stdout).toBe('out\n')
    expect(stderr).toMatch(/acquired "talk" after .*, token \d+\n.*released "talk" after/s)
  })
})

describe('holdfast run --min-hold', () => {
  let onlooker: Holdfast
  beforeAll(async () => void (onlooker = await open(url)))
  afterAll(() => onlooker.close())

  it('keeps the lock although the command is over', async () => {
    // Connected before, and no command: on a busy machine one takes longer to start than the lock is kept.
    const lock = onlooker.mutex('period')
    await lock.run(() => {})
    const began = performance.now()
    const quick = holdfast(['run', 'period', '--min-hold', '2s', '-v', '--', 'echo', 'ran'], { url })
    await quick.says('ran')
    expect(await lock.tryAcquire()).toBeNull()
    expect(await quick.end()).toBe(0)
    expect(performance.now() - began).toBeGreaterThan(2000)
    expect(await (await lock.tryAcquire())?.release()).toBe('released')
  })

  it('is not cut short by a signal: then the lock is left to run out', async () => {
    const quick = holdfast(['run', 'cut', '--ttl', '3s', '--min-hold', '20s', '-v', '--', 'true'], {
      url,
    })
    await quick.says('is kept for another')
    quick.kill('SIGTERM')
    expect(await quick.end()).toBe(143)
    // Not by another command: on a busy machine it might begin when the lock has run out.
    const observer = await open(url)
    expect((await observer.inspect('cut')).holders).toHaveLength(1)
    await observer.close()
    expect((await run(['run', 'cut', '--wait', '10s', '--', 'true'], { url })).code).toBe(0)
  })

  it("does not call work lost that was done before: the code is the command's own", async () => {
    const quick = holdfast(['run', 'kept', '--ttl', '3s', '--min-hold', '15s', '-v', ...sh('exit 3')], {
      url,
    })
    await quick.says('is kept for another')
    const observer = await open(url)
    const ends = async (): Promise<number> => (await observer.inspect('kept')).holders[0]?.expiresIn ?? 0
    // Two renewals: the first may have been on its way before the end.
    for (let renewals = 0, before = await ends(); renewals < 2;) {
      const now = await ends()
      if (now > before) renewals++
      before = now
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await run(['release', '--force', 'kept', '--reason', 'to see'], { url })
    expect(await quick.end()).toBe(3)
    expect(quick.stderr).toContain('"kept" was lost after the command had ended')
    await observer.close()
  })
})
