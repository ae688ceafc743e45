import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'

import { available, mariadb, redis, redisCommand } from '../../scripts/services.mjs'
import { memcached } from '../../scripts/services/memcached.mjs'
import { setUp } from '../stores/quorum/kit.ts'
import { endAll, holdfast, lockServer, program, run, sh, tempFolder } from './cli.ts'

let server: Awaited<ReturnType<typeof lockServer>>
let url = ''
beforeAll(async () => {
  server = await lockServer()
  ;({ url } = server)
})
afterAll(() => server.kill('SIGKILL'))
afterEach(endAll)

async function hold(name: string, ...options: readonly string[]): Promise<void> {
  const holder = holdfast(['run', name, ...options, ...sh('echo in; sleep 60')], { url })
  await holder.says('in')
}

describe('holdfast inspect', () => {
  it('shows holders and waiters with owners, tokens and ages', async () => {
    await hold('watched')
    holdfast(['run', 'watched', '--', 'true'], { url })
    const inspect = async (): Promise<string> => (await run(['inspect', 'watched'], { url })).stdout
    await vi.waitUntil(async () => (await inspect()).includes('waits'), { timeout: 10_000 })
    expect(await inspect()).toMatch(
      /^watched \(mutex\)\n\nSTATE +OWNER +TAKES +TOKEN +FOR +EXPIRES IN\nholds +\S+:\d+ +\d{16} +[\d.]+m?s +[\d.]+m?s\nwaits 1\. +\S+:\d+ +[\d.]+m?s\n$/,
    )
    const seen = JSON.parse((await run(['inspect', 'watched', '--json'], { url })).stdout) as {
      holders: { token: string; age: number; expiresIn: number }[]
    }
    expect(seen).toMatchObject({
      name: 'watched',
      kind: 'mutex',
      holders: [{ weight: 1 }],
      waiters: [{ weight: 1 }],
    })
    const [{ token, age, expiresIn } = { token: '', age: -1, expiresIn: -1 }] = seen.holders
    expect(token).toMatch(/^\d{16}$/)
    expect(age).toBeGreaterThanOrEqual(0)
    expect(expiresIn).toBeGreaterThan(0)
    // Whoever knows a claim's id can release it.
    expect(JSON.stringify(seen)).not.toContain('"id"')
  })

  it('knows readers, writers and permits by name', async () => {
    await hold('book', '--shared')
    await hold('gpu', '--permits', '2', '--of', '5')
    expect((await run(['inspect', 'book'], { url })).stdout).toMatch(/read-write[^]*read /)
    expect((await run(['inspect', 'gpu'], { url })).stdout).toMatch(/semaphore of 5[^]*2 of 5/)
  })

  it('says so when there is nothing to see any more', async () => {
    await run(['run', 'over', '--of', '3', '--', 'true'], { url })
    const { stdout } = await run(['inspect', 'over', '--json'], { url })
    expect(JSON.parse(stdout)).toMatchObject({ kind: 'free', holders: [], waiters: [] })
  })

  it.skipIf(!existsSync('/dev/full'))('does not end well when its answer cannot be written', async () => {
    const into = (...args: readonly string[]): { status: number | null; stderr: string } =>
      spawnSync('sh', ['-c', '"$@" > /dev/full', '-', process.execPath, program, ...args], {
        env: { ...process.env, HOLDFAST_URL: url },
        encoding: 'utf8',
      })
    const { status, stderr } = into('ls', '--json')
    expect([status, stderr]).toEqual([71, 'holdfast: The output cannot be written: ENOSPC\n'])
    // What the command writes is its own business.
    expect(into('run', 'quiet', '--', 'true').status).toBe(0)
  })

  it('says so when there is nothing to see', async () => {
    expect(await run(['inspect', 'nothing'], { url })).toEqual({
      code: 0,
      stdout: 'Nobody holds "nothing" or waits for it.\n',
      stderr: '',
    })
  })
})

describe('holdfast ls', () => {
  it('lists what is held, by prefix, in a table without colours when nobody looks', async () => {
    await hold('ls:one')
    await hold('ls:two')
    const { stdout } = await run(['ls', 'ls:'], { url })
    expect(stdout).toMatch(
      /^NAME +KIND +HELD BY +TOKEN +FOR +WAITING\nls:one +mutex .* 0\nls:two +mutex .* 0\n$/,
    )
    // eslint-disable-next-line no-control-regex -- colours are what this looks for
    expect(stdout).not.toMatch(/\u001b/)
    const first = JSON.parse((await run(['ls', 'ls:', '--limit', '1', '--json'], { url })).stdout) as {
      locks: object[]
    }
    expect(first).toMatchObject({ locks: [{ name: 'ls:one', holders: [{ weight: 1 }] }], more: true })
    expect((await run(['ls', 'no-such-prefix'], { url })).stdout).toBe('No locks are held.\n')
  })

  it('with --watch goes on until it is interrupted', async () => {
    const watching = holdfast(['ls', 'watch:', '--watch', '--every', '50ms', '--json'], { url })
    await watching.says('{"locks":[],"more":false}\n')
    await hold('watch:me')
    await watching.says('"name":"watch:me"')
    // Node warns when the eleventh look has left something behind.
    await vi.waitUntil(() => watching.stdout.split('\n').length > 15, { timeout: 10_000 })
    watching.kill('SIGINT')
    expect(await watching.end()).toBe(0)
    expect(watching.stderr).toBe('')
  })

  it('with --watch that is interrupted does not wait for a server that stands still', async () => {
    const still = await lockServer()
    try {
      const watching = holdfast(['ls', '--watch', '--every', '50ms', '--json'], { url: still.url })
      await watching.says('{"locks":[],"more":false}\n')
      still.kill('SIGSTOP')
      const began = performance.now()
      watching.kill('SIGINT')
      expect(await watching.end()).toBe(0)
      // A look and a farewell wait for two seconds each.
      expect(performance.now() - began).toBeLessThan(1500)
    } finally {
      still.kill('SIGKILL')
    }
  })

  it('with --watch goes on over a restart of the server', async () => {
    const former = await lockServer()
    const watching = holdfast(['ls', '--watch', '--every', '50ms', '--json'], { url: former.url })
    await watching.says('{"locks":[],"more":false}\n')
    former.kill('SIGTERM')
    await former.end()
    await watching.says('trying again')
    const at = former.url.replace('holdfast://', '')
    const later = holdfast(['serve', '--listen', at, '--state', 'none'])
    await later.says('Listening')
    await run(['run', 'after', ...sh('sleep 1')], { url: former.url })
    await watching.says('"name":"after"')
    watching.kill('SIGINT')
    expect(await watching.end()).toBe(0)
  })

  it('does not ask without a pause', async () => {
    const { code, stderr } = await run(['ls', '--watch', '--every', '0'], { url })
    expect([code, stderr]).toEqual([64, expect.stringContaining('--every takes at least')])
  })
})

describe('holdfast doctor', () => {
  it('measures a store and says what it can promise', async () => {
    const { code, stdout } = await run(['doctor', url])
    expect(code).toBe(0)
    for (const word of [
      'connection',
      'latency',
      'exclusion',
      'tokens',
      'wake-up',
      'clock',
      'a holder crashes',
    ]) {
      expect(stdout).toContain(word)
    }
    const report = JSON.parse((await run(['doctor', '--json'], { url })).stdout) as {
      latency: { median: number }
      clockOffset: number
    }
    expect(report).toMatchObject({ kind: 'holdfast', capabilities: { queue: true } })
    expect(report.latency.median).toBeGreaterThan(0)
    expect(Math.abs(report.clockOffset)).toBeLessThan(1000)
    // It leaves nothing behind.
    expect((await run(['ls', 'holdfast-doctor'], { url })).stdout).toBe('No locks are held.\n')
  })

  it.skipIf(!available('redis'))('looks at the settings of a Redis that break locks', async () => {
    await using server = await redis({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'] })
    const { stdout } = await run(['doctor', server.url])
    expect(stdout).toMatch(/^(note|FAIL) +eviction /m)
  })

  it('answers 69 for a store that is not there', async () => {
    expect((await run(['doctor', 'holdfast://127.0.0.1:1'])).code).toBe(69)
  })

  describe.skipIf(!available('redis'))('of a quorum', () => {
    let servers: Awaited<ReturnType<typeof redis>>[]
    beforeAll(async () => void (servers = await Promise.all([1, 2, 3, 4].map(() => redis()))))
    afterAll(() => Promise.all(servers.map((one) => one.stop())))
    beforeEach(() => Promise.all(servers.map((one) => redisCommand(one, 'FLUSHALL'))))

    const places = (from: number, to: number): string[] =>
      servers.slice(from, to).map(({ host, port }) => `${host}:${port}`)
    const doctor = (at: readonly string[], query = '') => run(['doctor', `redlock://${at.join()}${query}`])

    it('that works says how many of its servers may fail', async () => {
      await setUp(servers)
      const { code, stdout, stderr } = await doctor(places(0, 3))
      expect(stdout).toMatch(/^ok +quorum +3 servers: 1 may fail$/m)
      for (const place of places(0, 3)) expect(stdout).toMatch(new RegExp(`^ok +node +${place} votes$`, 'm'))
      expect(stdout).toMatch(/^ok +exclusion /m)
      // Its servers would come back empty, which a quorum stands; and it has no clock that could be behind.
      expect(stdout).not.toMatch(/persistence|setup|the store's clock is/)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    })

    it('that takes short leases only is examined with such', async () => {
      await setUp(servers)
      const { code, stdout, stderr } = await doctor(places(0, 3), '?maxTtl=5000')
      expect(stdout).toMatch(/^ok +exclusion /m)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      // A server that cannot vote, and locks that can be had all the same.
      const [first] = servers as [(typeof servers)[0]]
      await redisCommand(first, 'CONFIG', 'SET', 'maxmemory', 1)
      const full = await doctor(places(0, 3), '?maxTtl=5000')
      await redisCommand(first, 'CONFIG', 'SET', 'maxmemory', 0)
      expect(full.stdout).toMatch(/^FAIL +writes /m)
      expect(full.stdout).toMatch(/^ok +exclusion /m)
    })

    it('of an even number says that one fewer would do', async () => {
      await setUp(servers)
      const { code, stdout } = await doctor(places(0, 4))
      expect(stdout).toMatch(
        /^note +quorum +4 servers: 1 may fail\. 3 servers would stand as many failures\.$/m,
      )
      expect(code).toBe(0)
    })

    it('one of whose servers was wiped says when that one votes again', async () => {
      await setUp(servers.slice(1))
      const { code, stdout } = await doctor(places(0, 3))
      expect(stdout).toMatch(/^note +quorum +2 of 3 servers vote: none more may fail$/m)
      expect(stdout).toMatch(
        new RegExp(`^note +node +${places(0, 1)[0]} came up empty, and votes in (29|30) s`, 'm'),
      )
      expect(stdout).toMatch(/^ok +exclusion /m)
      expect(code).toBe(0)
    })

    it('one of whose servers is not there goes on with the others', async () => {
      await setUp(servers)
      const { code, stdout, stderr } = await doctor([...places(0, 2), '127.0.0.1:1'])
      expect(stdout).toMatch(/^note +quorum +2 of 3 servers vote: none more may fail$/m)
      expect(stdout).toMatch(/^note +node +127\.0\.0\.1:1 does not answer: connect ECONNREFUSED/m)
      expect(stdout).toMatch(/^ok +exclusion /m)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    })

    it('most of whose servers are not there answers 69, and names them', async () => {
      const { code, stderr } = await doctor([...places(0, 1), '127.0.0.1:1', '127.0.0.1:2'])
      expect(stderr).toMatch(/Only 1 of 3 stores can vote, .*127\.0\.0\.1:1: .*; 127\.0\.0\.1:2: /)
      expect(code).toBe(69)
    })

    it('that nobody has set up says so at once, and from when on there are locks', async () => {
      const { code, stdout } = await doctor(places(0, 3))
      expect(stdout).toMatch(
        /^FAIL +quorum +only 0 of 3 servers can vote, and 2 have to agree: nobody gets a lock\. They can in (29|30) s\./m,
      )
      for (const place of places(0, 3)) expect(stdout).toContain(`${place} came up empty`)
      expect(stdout).not.toContain('latency')
      expect(code).toBe(1)
      const setup = await doctor(places(0, 3), '?setup=now')
      expect(setup.stdout).toMatch(/^ok +quorum +3 servers: 1 may fail\nnote +setup +setup=now: /m)
      expect(setup.code).toBe(0)
    })

    it('looks at what each server keeps on disk: an old state is worse than none', async () => {
      await setUp(servers)
      await using server = await redis({ args: ['--save', '60 1'] })
      const { stdout } = await doctor([...places(0, 2), `${server.host}:${server.port}`])
      expect(stdout).toMatch(
        new RegExp(`^note +persistence +${server.host}:${server.port}: keeps only snap`, 'm'),
      )
      expect(stdout.match(/persistence/g)).toHaveLength(1)
    })
  })
})

describe('holdfast conformance', () => {
  it('runs the cases that the store can be asked, and counts the rest', async () => {
    const { code, stdout } = await run(['conformance', url, '--only', 'tokens'])
    expect(stdout).toMatch(/^ok {4}tokens\//m)
    expect(stdout).toMatch(/\d+ passed, 0 failed, \d+ not applicable\n$/)
    expect(code).toBe(0)
    expect((await run(['conformance', 'memory:', '--only', 'no-such-case'])).code).toBe(64)
  })

  it.skipIf(!available('memcached'))(
    'allows for what a store does not do by design, and says why',
    async () => {
      await using cache = await memcached()
      const { code, stdout } = await run(['conformance', cache.url, '--only', 'list/'])
      expect(stdout).toMatch(/^n\/a {3}list\/pages: .* \(memcached cannot say which keys it has\)$/m)
      // Whole seconds, rounded up, and three more.
      const late = await run(['conformance', cache.url, '--only', 'expiry/frees'])
      expect(late.stdout).toMatch(/1 passed, 0 failed/)
      expect([code, late.code]).toEqual([0, 0])
    },
  )
})

describe('holdfast schema', () => {
  it.each(['mysql', 'postgres', 'sqlite'])('prints the table for %s', async (dialect) => {
    const { code, stdout } = await run(['schema', dialect, '--table', 'my_locks'])
    expect(stdout).toMatch(/CREATE TABLE.*my_locks/)
    expect(code).toBe(0)
  })
})

describe('holdfast tidy', () => {
  it('says that a store without a table has nothing to tidy', async () => {
    const { code, stderr } = await run(['tidy', 'memory:'])
    expect(stderr).toMatch(/nothing to tidy/)
    expect(code).toBe(64)
    expect((await run(['tidy', 'memory:', '--idle', '5'])).stderr).toMatch(/--idle 5: of what/)
  })

  it.skipIf(!available('mariadb'))(
    'forgets the names that are not in use',
    { timeout: 120_000 },
    async () => {
      const database = await mariadb()
      const there = { url: database.url }
      await run(['run', 'used', '--', 'true'], there)
      await holdfast(['run', 'in use', ...sh('echo in; sleep 60')], there).says('in')
      expect((await run(['tidy'], there)).stdout).toBe('0 of 2 names were forgotten.\n')
      expect((await run(['tidy', '--idle', '0'], there)).stdout).toBe('1 of 2 names were forgotten.\n')
      expect(JSON.parse((await run(['tidy', '--idle', '0', '--json'], there)).stdout)).toEqual({
        looked: 1,
        removed: 0,
      })
      await endAll()
      await database.stop()
    },
  )
})

describe('help', () => {
  const commands = [
    'run',
    'acquire',
    'release',
    'ls',
    'inspect',
    'serve',
    'doctor',
    'conformance',
    'schema',
    'tidy',
    'demo',
    'completion',
  ]

  it('lists every command', async () => {
    const { code, stdout } = await run(['--help'])
    expect(code).toBe(0)
    for (const name of commands) expect(stdout).toMatch(new RegExp(`^  ${name} +\\w`, 'm'))
    expect((await run([])).code).toBe(64)
    expect((await run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+/)
  })

  it.each(commands)('of %s has options and examples, and is the same by both ways', async (name) => {
    const { code, stdout } = await run([name, '--help'])
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`^Usage: holdfast ${name} [^]*\\nOptions:\\n[^]*\\nExamples:\\n  `))
    expect((await run(['help', name])).stdout).toBe(stdout)
  })
})

describe('completion', () => {
  const folder = tempFolder()

  it.each([
    [['holdfast', 'ins'], 'inspect'],
    [['holdfast', 'run', 'name', '--on'], '--on-lost'],
    [['holdfast', 'run', 'name', '--on-lost', 'ki'], 'kill'],
    [['holdfast', 'run', 'name', '--', 'tru'], 'true'],
    [['holdfast', 'serve', '--tokens-file', '/etc/pass'], '/etc/passwd'],
    [['holdfast', 'completion', 'z'], 'zsh'],
    [['holdfast', 'schema', 'post'], 'postgres'],
    [['holdfast', 'token', 'n'], 'new'],
    [['holdfast', 'help', 'acq'], 'acquire'],
  ])('for bash answers %j', async (words, answer) => {
    const file = join(folder, 'bash')
    writeFileSync(file, (await run(['completion', 'bash'])).stdout)
    const script = `. ${file}; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _holdfast; echo "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(stdout.trim().split(' ')).toContain(answer)
  })

  it.each(['zsh', 'fish'])('for %s names every command', async (shell) => {
    const { stdout } = await run(['completion', shell])
    for (const name of ['run', 'acquire', 'doctor']) expect(stdout).toContain(name)
    const { status } = spawnSync(shell, ['-n', '-c', stdout])
    // Where the shell is installed, it also has to find the script well-formed; null: it is not.
    expect([0, null]).toContain(status)
  })

  it('for another shell is refused', async () => {
    expect((await run(['completion', 'tcsh'])).code).toBe(64)
  })
})
