import { fork } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { uptime } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, it, vi } from 'vitest'

import { HorizonFile } from '../../../src/server/embedded/horizon-file.ts'
import { systemClocks } from '../../../src/server/embedded/clocks.ts'
import { holdfastStore } from '../../../src/stores/holdfast/index.ts'
import { afterwards, call, serve, take, temporaryFolder } from '../helpers.ts'

const PROGRAM = fileURLToPath(new URL('../crash-server.mjs', import.meta.url))

async function launch(
  listen: string,
  state: string,
  env: NodeJS.ProcessEnv = {},
): Promise<ReturnType<typeof fork>> {
  const child = fork(PROGRAM, [listen, state], { env: { ...process.env, ...env } })
  afterwards(() => child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

it('refuses a second server on one state file, by whatever path, and takes the file over from a dead one', async () => {
  const folder = temporaryFolder()
  const state = join(folder, 'state.json')
  symlinkSync(folder, `${folder}-too`)
  afterwards(async () => (await import('node:fs')).unlinkSync(`${folder}-too`))
  const first = await launch('127.0.0.1:0', state)
  await expect(serve({ state })).rejects.toThrow('in use by another lock server')
  await expect(serve({ state: join(`${folder}-too`, 'state.json') })).rejects.toThrow('in use by another')
  first.kill('SIGKILL')
  await once(first, 'exit')
  const second = await serve({ state })
  await expect(serve({ state })).rejects.toThrow('in use by another lock server')
  await second.close()
  await expect(serve({ state })).resolves.toBeDefined()
})

it('keeps its promises in the file that a link leads to, also if that is not there yet', async () => {
  const folder = temporaryFolder()
  const state = join(folder, 'disk', 'state.json')
  const link = join(folder, 'link.json')
  mkdirSync(join(folder, 'disk'))
  symlinkSync(join('disk', 'state.json'), join(folder, 'second.json'))
  symlinkSync('second.json', link)
  const first = await serve({ state: link })
  await expect(serve({ state })).rejects.toThrow('in use by another lock server')
  await take(first, { name: 'a', ttl: 20_000 })
  await first.close()
  expect(lstatSync(link).isSymbolicLink()).toBe(true)
  const second = await serve({ state })
  expect((await call(second, 'POST /v1/acquire', { body: { name: 'a' } })).body.error.code).toBe('LOCK_BUSY')
})

it('lets at most one of many that start at once have a state file that a dead server left', async () => {
  const state = join(temporaryFolder(), 'state.json')
  const dead = await launch('127.0.0.1:0', state)
  dead.kill('SIGKILL')
  await once(dead, 'exit')
  const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => serve({ state })))
  expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(1)
})

it.each([
  ['path', join('x'.repeat(120), 'state.json')],
  ['name', `${'x'.repeat(120)}.json`],
  ['path and name', join('x'.repeat(120), `${'y'.repeat(120)}.json`)],
])(
  'locks a state file with a long %s beside it, where the folder is, and leaves nothing there',
  async (_, file) => {
    const state = join(temporaryFolder(), file)
    // Elsewhere than on Linux, it is in that folder.
    const env = process.platform === 'linux' ? { TMPDIR: temporaryFolder() } : {}
    const first = await launch('127.0.0.1:0', state, env)
    await expect(serve({ state })).rejects.toThrow('in use by another lock server')
    first.kill('SIGTERM')
    await once(first, 'exit')
    const second = await serve({ state })
    expect(second.startsIn).toBe(0)
    await second.close()
    expect(readdirSync(dirname(state)).filter((name) => name.includes('.lock-'))).toEqual([])
  },
)

it.runIf(process.platform === 'linux')(
  'has its lock where others cannot put anything, however long the path',
  async () => {
    const state = join(temporaryFolder(), 'x'.repeat(120), 'state.json')
    const everybodys = temporaryFolder()
    vi.stubEnv('TMPDIR', everybodys)
    afterwards(() => vi.unstubAllEnvs())
    await serve({ state })
    expect(readdirSync(everybodys)).toEqual([])
    expect(readdirSync(dirname(state)).some((name) => name.startsWith('state.json.lock-'))).toBe(true)
  },
)

it('never writes over a promise that it has not read, though it has read an earlier one of the same server', async () => {
  const path = join(temporaryFolder(), 'state.json')
  const record = { boot: null, uptime: 1, wall: 1, span: 1, token: 1 }
  const first = new HorizonFile(path, 'first')
  first.read()
  await first.write(record)
  const second = new HorizonFile(path, 'second')
  second.read()
  // The first still lives, and promises more.
  await first.write({ ...record, span: 60_000 })
  await expect(second.write(record)).rejects.toThrow('another lock server')
})

it('finds its state again however its address is written', async () => {
  vi.stubEnv('XDG_STATE_HOME', temporaryFolder())
  afterwards(() => vi.unstubAllEnvs())
  const any = await serve()
  const port = any.address.split(':').at(-1)
  await any.close()
  const first = await serve({ listen: `127.0.0.1:${port}` })
  await take(first, { name: 'a', ttl: 30_000, owner: 'me' })
  await first.close()
  for (const host of ['localhost', '127.0.0.2', '0.0.0.0']) {
    const next = await serve({ listen: `${host}:${port}`, insecure: true })
    const store = holdfastStore(next.url)
    expect(await store.inspect('a', 2000)).toMatchObject({ holders: [{ owner: 'me' }] })
    await store.close()
    await next.close()
  }
})

it.skipIf(process.platform === 'win32')(
  'leaves the socket of a live server alone, also if that does not get round to answering',
  async () => {
    const path = join(temporaryFolder(), 's.sock')
    const child = await launch(`unix:${path}`, join(temporaryFolder(), 'state.json'))
    child.kill('SIGSTOP')
    const { ino } = lstatSync(path)
    // A full backlog: whoever tries now is told to come again.
    await Promise.all(
      Array.from({ length: 600 }, async () => {
        const socket = connect(path)
        afterwards(() => socket.destroy())
        await new Promise<void>((resolve) => {
          socket.on('connect', resolve)
          socket.on('error', () => resolve())
        })
      }),
    )
    await expect(serve({ listen: `unix:${path}`, state: null })).rejects.toThrow('EADDRINUSE')
    expect(lstatSync(path).ino).toBe(ino)
    child.kill('SIGCONT')
  },
)

it('waits for leases that last longer than a timer can', async () => {
  const state = join(temporaryFolder(), 'state.json')
  const span = 2 ** 31 + 60_000
  const { boot } = systemClocks()
  const record = { boot, uptime: uptime() * 1000 + span, wall: Date.now() + span, span, token: 1 }
  writeFileSync(state, `${JSON.stringify({ writer: 'w', ...record })}\n`)
  const server = await serve({ state })
  expect(server.startsIn).toBeGreaterThan(2 ** 31)
  await new Promise((resolve) => void setTimeout(resolve, 100))
  const { status, body } = await call(server, 'POST /v1/acquire', { body: { name: 'a' } })
  expect([status, body.error.code]).toEqual([503, 'STARTING'])
})
