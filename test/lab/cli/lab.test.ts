import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'

import { available, redis, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { toJson } from '../../../src/lab/live/index.ts'
import type { RunRecord } from '../../../src/lab/record.ts'
import { REDIS_LIKE, Script } from '../checkers/evidence.ts'
import { alive, endAll, holdfast, lockServer, program, run, Running, tempFolder } from '../../cli/cli.ts'

afterEach(endAll)

const SOON = { timeout: 20_000, interval: 1 }
const SHORT = ['--clients', '3', '--for', '2s', '--seed', '7']

/** Nothing broke that must hold. What a machine is too busy to say is undecided, and no success. */
function expectPromised(code: unknown, stdout: string): void {
  expect(stdout).not.toContain('BROKE')
  if (stdout.includes('too slow to say')) return
  expect(stdout).toContain('Everything that was run is as the store promises.')
  expect(code).toBe(0)
}

describe('holdfast lab', () => {
  let server: Awaited<ReturnType<typeof lockServer>>
  beforeAll(async () => void (server = await lockServer()))
  afterAll(async () => {
    server.kill('SIGTERM')
    await server.end()
  })

  it('hurts clients on a store, says what held, writes both files and leaves nothing behind', async () => {
    const folder = tempFolder()
    const [html, json] = [join(folder, 'lab.html'), join(folder, 'lab.json')]
    const { code, stdout } = await run(['lab', server.url, ...SHORT, '--html', html, '--json', json])
    expectPromised(code, stdout)
    expect(stdout).toMatch(/exclusivity +holds +held/)
    const again = await run(['lab', '--judge', json])
    expect(again.stdout).toMatch(/exclusivity +holds +held/)
    expect(again.code).toBe(code)
    expect(readFileSync(html, 'utf8')).toContain('<svg')
    const [record] = JSON.parse(readFileSync(json, 'utf8')) as RunRecord[]
    expect(record).toMatchObject({ store: 'holdfast', seed: 7, fault: 'pause, kill, cut' })
    expect(record?.faults.length).toBeGreaterThan(0)
    const { stdout: left } = await run(['ls', '--json'], { url: server.url })
    expect(left).not.toContain('holdfast-lab-')
  })

  it.skipIf(spawnSync('openssl', ['version']).status !== 0)(
    'trusts the certificates that it is told to, in every client',
    async () => {
      const folder = tempFolder()
      const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
      const words =
        'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1'
      expect(spawnSync('openssl', [...words.split(' '), '-keyout', key, '-out', cert]).status).toBe(0)
      const secure = await lockServer('--tls-cert', cert, '--tls-key', key)
      const trusted = ['--faults', 'kill', '--ca-file', cert]
      const { code, stdout } = await run(['lab', secure.url, ...SHORT, ...trusted])
      secure.kill('SIGTERM')
      await secure.end()
      expectPromised(code, stdout)
      expect(stdout).toMatch(/exclusivity +holds +held/)
    },
  )

  it('ends in order when it is interrupted', async () => {
    const json = join(tempFolder(), 'lab.json')
    const words = ['lab', server.url, '--clients', '2', '--for', '1h', '--faults', 'reset', '--seed', '3']
    const running = holdfast([...words, '--json', json])
    await running.says('seed')
    running.kill('SIGINT')
    expect(await running.end()).toBe(130)
    expect(running.stdout).toContain('grants')
    // As it was asked for, and not as times are told to people: a shell has to understand it.
    const [record] = JSON.parse(readFileSync(json, 'utf8')) as RunRecord[]
    expect(record?.counts?.command).toBe(['holdfast', ...words].join(' '))
    const { stdout: left } = await run(['ls', '--json'], { url: server.url })
    expect(left).not.toContain('holdfast-lab-')
  })

  it.each(['as its first process begins', 'when all are at work'])(
    'ends in order when its whole job is told to end, %s',
    async (when) => {
      const args = ['lab', server.url, '--clients', '2', '--for', '1h', '--faults', 'reset']
      // A group of its own, as a shell gives to a job, `timeout` to its command and a runner to a step.
      const running = new Running(
        spawn(process.execPath, [program, ...args], { detached: true, stdio: 'pipe' }),
      )
      await running.says('seed')
      if (when.startsWith('when')) await sleep(2000)
      else await vi.waitUntil(() => spawnSync('pgrep', ['-P', String(running.pid)]).status === 0, SOON)
      process.kill(-running.pid, 'SIGTERM')
      expect(await running.end()).toBe(143)
      expect(running.stderr).toBe('')
      expect(running.stdout).toMatch(/clients +holds +held/)
    },
  )

  it('leaves no client stopped when it is killed itself', async () => {
    const args = ['lab', server.url, '--clients', '2', '--for', '1h', '--faults', 'pause']
    const running = holdfast(args)
    const said = (...command: readonly [string, ...string[]]) =>
      spawnSync(command[0], command.slice(1), { encoding: 'utf8' }).stdout.trim()
    const clients = (): readonly string[] => said('pgrep', '-P', String(running.pid)).split('\n')
    const stopped = await vi.waitUntil(
      () => clients().find((pid) => said('ps', '-o', 'stat=', '-p', pid).startsWith('T')),
      SOON,
    )
    running.kill('SIGKILL')
    await running.end()
    await vi.waitFor(() => expect(alive(Number(stopped))).toBe(false), SOON)
  })

  it('touches nothing that is not on this machine unless told to', async () => {
    const { code, stderr } = await run(['lab', 'redis://192.0.2.1', ...SHORT])
    expect(code).toBe(64)
    expect(stderr).toContain('redis://192.0.2.1 is not on this machine')
    expect(stderr).toContain('--yes')
  })

  it('hurts the server by a command that it is given, and brings it back', async () => {
    const folder = tempFolder()
    const json = join(folder, 'lab.json')
    const { pid } = server
    const hurt = ['--hurt-server', `kill -STOP ${pid}`, '--heal-server', `kill -CONT ${pid}`]
    const { code, stdout } = await run([
      'lab',
      server.url,
      ...SHORT,
      '--faults',
      'reset',
      ...hurt,
      '--json',
      json,
    ])
    expectPromised(code, stdout)
    const [record] = JSON.parse(readFileSync(json, 'utf8')) as RunRecord[]
    const strikes = record?.faults.filter(({ kind }) => kind === 'server')
    expect(strikes?.[0]).toMatchObject({ target: 'the server', detail: `kill -STOP ${pid}` })
  })

  it('says so when the command that is to hurt the server fails', async () => {
    const { code, stderr } = await run([
      'lab',
      server.url,
      ...SHORT,
      '--faults',
      'reset',
      '--hurt-server',
      'exit 3',
    ])
    expect(stderr).toContain('The command ended with 3: exit 3')
    expect(code).toBe(1)
  })

  it.each([
    ['--heal-server', 'true', 'belongs to --hurt-server'],
    ['--faults', 'pause,earthquake', 'got "earthquake"'],
    ['--faults', 'wipe', 'got "wipe"'],
    ['--clients', '1', 'from 2 to 100'],
    ['--for', '60', 'of what?'],
    ['--judge', 'package.json', 'needs no store'],
  ])('refuses %s %s before it does anything', async (option, value, words) => {
    const { code, stderr } = await run(['lab', server.url, option, value])
    expect(code).toBe(64)
    expect(stderr).toContain(words)
  })

  // A machine that is too busy to answer in time looks as if it had done something.
  it('says that a command that was to hurt the server did nothing', { retry: 2 }, async () => {
    // Long enough for its turn: calm comes before it and after it.
    const long = ['--clients', '3', '--for', '12s', '--seed', '7']
    const { stdout, code } = await run([
      'lab',
      server.url,
      ...long,
      '--faults',
      'none',
      '--hurt-server',
      'true',
    ])
    expect(stdout).toMatch(/faults +holds +undecided +server: "true" did nothing that was seen/)
    expect(code).toBe(1)
  })

  it.each([
    ['nothing', '[]', 'has no evidence in it'],
    ['no record', '[null, 5]', 'has no evidence in it'],
    [
      'a part',
      '[{ "evidence": { "format": 1, "settings": { "ttl": 5, "names": [] } } }]',
      'a part is missing',
    ],
    ['what a later version wrote', '[{ "evidence": { "format": 2 } }]', 'another version wrote it'],
  ])('does not judge %s', async (_what, text, words) => {
    const file = join(tempFolder(), 'lab.json')
    writeFileSync(file, text)
    const { code, stderr } = await run(['lab', '--judge', file])
    expect(code).toBe(64)
    expect(stderr).toContain(words)
  })

  it.each([
    ['a history of something else', { history: [5, null] }],
    ['a time that is none', { history: [{ process: 'a', op: 1, kind: 'acquire', phase: 'ok', at: 'soon' }] }],
    ['a look at nothing', { looks: [null] }],
    ['a register without a log', { registers: [{}] }],
    ['refusals that are no list', { refusals: 5 }],
  ])('says of a file with %s in it that it is broken', async (_what, part) => {
    const file = join(tempFolder(), 'lab.json')
    const script = new Script()
    script.turns(3, 20)
    const evidence = { ...script.evidence([{ kind: 'none', what: 'nothing happens' }]), ...part }
    writeFileSync(file, toJson([{ id: 'live/x', verdicts: [], evidence }]))
    const { code, stderr } = await run(['lab', '--judge', file])
    expect(stderr).toMatch(/^holdfast: --judge cannot read the evidence in .*lab\.json: .*broken \(.*\)\n$/)
    expect(code).toBe(64)
  })

  it('says so of what is broken beside the evidence, when that is to be shown', async () => {
    const folder = tempFolder()
    const [file, html] = [join(folder, 'lab.json'), join(folder, 'lab.html')]
    const script = new Script()
    script.turns(3, 20)
    const evidence = script.evidence([{ kind: 'none', what: 'nothing happens' }])
    writeFileSync(file, toJson([{ id: 5, verdicts: [], evidence }]))
    const { code, stderr } = await run(['lab', '--judge', file, '--html', html])
    expect(stderr).toMatch(/^holdfast: --judge cannot read the evidence in .*broken \(.*\)\n$/)
    expect(code).toBe(64)
  })

  it('counts again what it judges again', async () => {
    const file = join(tempFolder(), 'lab.json')
    const script = new Script()
    script.turns(3, 20)
    const evidence = script.evidence([{ kind: 'none', what: 'nothing happens' }])
    const counts = { grants: 5000, respawns: 7, ttl: 1 }
    writeFileSync(file, toJson([{ id: 'live/x', verdicts: [], clients: [], faults: [], counts, evidence }]))
    expect((await run(['lab', '--judge', file])).stdout).toMatch(/^3 grants, 0 faults, \d clients \(0 in/)
  })

  it('says of a fault that cannot be made there which it was, and why, and not that a check was not run', async () => {
    const file = join(tempFolder(), 'lab.json')
    const script = new Script()
    script.turns(12, 20)
    const { settings, ...seen } = script.evidence([{ kind: 'none', what: 'nothing happens' }])
    const evidence = { ...seen, settings: { ...settings, capabilities: { ...REDIS_LIKE, queue: false } } }
    const why = 'its connections cannot be led through a proxy'
    const verdicts = [{ check: 'exclusivity', expected: 'may break', seen: 'not run', why }]
    const plain = { clients: [], faults: [], timeline: [], violations: [] }
    const records = [
      { ...plain, id: 'live/x', evidence },
      { ...plain, id: 'live/x/cut', fault: 'cut', verdicts },
    ]
    writeFileSync(file, toJson(records))
    const { stdout } = await run(['lab', '--judge', file])
    expect(stdout).toMatch(/exclusivity +holds +held/)
    expect(stdout).toContain(`cut: ${why}`)
    expect(stdout).not.toMatch(/Not run: .*exclusivity/)
  })

  it('believes nothing that has no evidence, and keeps what it says against itself', async () => {
    const file = join(tempFolder(), 'lab.json')
    const script = new Script()
    script.turns(12, 20)
    const evidence = script.evidence([{ kind: 'none', what: 'nothing happens' }])
    const counts = { grants: 12, respawns: 0, ttl: 1000 }
    const plain = { clients: [], faults: [], timeline: [], violations: [], counts }
    const said = (seen: string) => [{ check: 'second thoughts', expected: 'holds', seen }]
    const judge = async (seen: string) => {
      const records = [
        { ...plain, id: 'a', evidence },
        { ...plain, id: 'b', verdicts: said(seen) },
      ]
      writeFileSync(file, toJson(records))
      return run(['lab', '--judge', file])
    }
    expect((await judge('held')).stdout).toMatch(/second thoughts +holds +not run +no evidence of it was/)
    const broke = await judge('broke')
    expect(broke.stdout).toMatch(/second thoughts +holds +BROKE/)
    expect(broke.code).toBe(1)
  })

  it.each([
    ['no guarantees', { guarantees: {} }],
    ['a guarantee of another kind', { guarantees: { ...REDIS_LIKE.guarantees, partition: 'usually' } }],
    ['no word on how waiters hear', { wakeups: undefined }],
  ])('does not judge a store with %s', async (_what, more) => {
    const file = join(tempFolder(), 'lab.json')
    const evidence = new Script().evidence([])
    const settings = { ...evidence.settings, capabilities: { ...REDIS_LIKE, ...more } }
    writeFileSync(file, toJson([{ id: 'live/x', verdicts: [], evidence: { ...evidence, settings } }]))
    const { code, stderr } = await run(['lab', '--judge', file])
    expect(code).toBe(64)
    expect(stderr).toContain('a part is missing')
  })

  it('does not judge calls on a lock that it knows nothing of', async () => {
    const file = join(tempFolder(), 'lab.json')
    const script = new Script()
    script.turns(3, 20)
    const evidence = script.evidence([])
    const settings = { ...evidence.settings, names: [] }
    writeFileSync(file, toJson([{ id: 'live/x', verdicts: [], evidence: { ...evidence, settings } }]))
    const { code, stderr } = await run(['lab', '--judge', file])
    expect(code).toBe(64)
    expect(stderr).toContain('a call on "seat", which is none of its locks')
  })

  it('refuses what would do nothing where it only judges', async () => {
    const { code, stderr } = await run(['lab', '--judge', 'lab.json', '--json', 'again.json'])
    expect(code).toBe(64)
    expect(stderr).toContain('--json has nothing to do with it')
  })

  it('refuses a store that lives in one process', async () => {
    const { code, stderr } = await run(['lab', 'memory:', ...SHORT])
    expect(code).toBe(64)
    expect(stderr).toContain('lives inside one process')
  })
})

describe.skipIf(!available('redis'))('holdfast lab on Redis', () => {
  let server: Server
  const password = 'correct-horse'
  beforeAll(async () => void (server = await redis({ args: ['--requirepass', password] })))
  afterAll(() => server.stop())

  it('shows no password, neither on the terminal nor in its files', async () => {
    const folder = tempFolder()
    const [html, json] = [join(folder, 'lab.html'), join(folder, 'lab.json')]
    const url = `redis://:${password}@127.0.0.1:${server.port}`
    const args = ['lab', '--clients', '2', '--for', '1s', '--faults', 'cut', '--html', html, '--json', json]
    const { code, stdout, stderr } = await run(args, { url })
    expectPromised(code, stdout)
    expect(stderr).toBe('')
    const files = [html, json].map((file) => readFileSync(file, 'utf8'))
    for (const text of [stdout, stderr, ...files]) expect(text).not.toContain(password)
  })

  it('ends with 1 when the store does not keep what it promises, whatever a fault beside it excuses', async () => {
    await using liar = await redis()
    const harmless = ['--faults', 'none', '--hurt-server', 'true']
    const running = holdfast(['lab', liar.url, '--clients', '3', '--for', '3s', ...harmless])
    await running.says('seed')
    // A server that forgets everything ten times a second, where the table only knows of what happens while it is hurt.
    const forget = setInterval(() => void redisCommand(liar, 'FLUSHALL').catch(() => undefined), 100)
    const code = await running.end()
    clearInterval(forget)
    expect(running.stdout).toMatch(/exclusivity +holds +BROKE +Outside of every fault/)
    expect(code).toBe(1)
  })

  it('hurts nobody on a store that can give no lock yet, and says why', async () => {
    await using first = await redis()
    await using second = await redis()
    await using third = await redis()
    const hosts = [first, second, third].map(({ port }) => `127.0.0.1:${port}`).join(',')
    const { code, stdout, stderr } = await run(['lab', `redlock://${hosts}`, ...SHORT])
    expect(stderr).toContain('came up empty, and votes again in')
    expect(stdout).toBe('')
    expect(code).toBe(69)
  })

  it('says before the run that a file cannot be written', async () => {
    const file = join(tempFolder(), 'nowhere', 'lab.html')
    const { code } = await run(['lab', `redis://127.0.0.1:${server.port}`, '--html', file])
    expect(code).toBe(71)
    expect(existsSync(file)).toBe(false)
  })
})
