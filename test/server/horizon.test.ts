import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, it } from 'vitest'

import type { ClaimRequest, StoreEvent } from '../../src/core/contract.ts'
import type { Clocks } from '../../src/server/embedded/clocks.ts'
import { ClaimsFile } from '../../src/server/embedded/claims-file.ts'
import { HorizonFile } from '../../src/server/embedded/horizon-file.ts'
import type { HorizonRecord } from '../../src/server/embedded/horizon-file.ts'
import { Horizon } from '../../src/server/embedded/horizon.ts'
import { EmbeddedStore } from '../../src/server/embedded/store.ts'
import { Hands } from './hands.ts'
import { afterwards, call, eventually, serve, temporaryFolder } from './helpers.ts'

const newPath = (): string => join(temporaryFolder(), 'state.json')
const onDisk = (path: string): HorizonRecord => JSON.parse(readFileSync(path, 'utf8')) as HorizonRecord
let runs = 0
const open = (path: string, clocks: Clocks): Horizon =>
  new Horizon({ file: new HorizonFile(path, `run-${++runs}`), clocks })

const embedded = (path: string, clocks: Clocks): EmbeddedStore =>
  new EmbeddedStore({ horizon: open(path, clocks), claims: new ClaimsFile(path) }, clocks)

/** What the next run would wait, and from which token it would go on. */
function nextRun(path: string, clocks: Clocks): { wait: number; floor: number } {
  const { pastEndsIn, tokenFloor } = open(path, clocks)
  return { wait: pastEndsIn, floor: tokenFloor }
}

it('lets a promise out only when the disk has it', async () => {
  const [path, clocks] = [newPath(), new Hands()]
  const horizon = open(path, clocks)
  expect(horizon.pastEndsIn).toBe(0)
  const pending = horizon.cover({ end: clocks.now + 15_000, token: 7_000_000 })
  expect(pending).not.toBeNull()
  await pending
  const { wait, floor } = nextRun(path, clocks)
  expect(wait).toBeGreaterThanOrEqual(15_000)
  expect(floor).toBeGreaterThanOrEqual(7_000_000)
})

it('is ahead of need: those who renew in time never wait for the disk, which is asked seldom', async () => {
  const clocks = new Hands()
  let writes = 0
  // A disk that is done as soon as anything else has its turn.
  const file = {
    read: () => null,
    write: () => Promise.resolve(void writes++),
    writeNow: () => void writes++,
  }
  const horizon = new Horizon({ file, clocks })
  await horizon.cover({ end: clocks.now + 15_000, token: 0 })
  for (let second = 0; second < 60; second++) {
    clocks.pass(1000)
    expect(horizon.cover({ end: clocks.now + 15_000, token: second * 1_000_000 }), `${second}`).toBeNull()
    await new Promise((resolve) => void setImmediate(resolve))
  }
  expect(writes).toBeGreaterThan(15)
  expect(writes).toBeLessThan(40)
})

it('makes the next run wait until the furthest lease has ended, and not longer', async () => {
  const [path, clocks] = [newPath(), new Hands()]
  await open(path, clocks).cover({ end: clocks.now + 15_000, token: 1 })
  const { wait } = nextRun(path, clocks)
  expect(wait).toBeLessThan(20_000)
  clocks.pass(wait)
  expect(nextRun(path, clocks).wait).toBe(0)
})

it('is not fooled by a wall clock that was set while the machine ran', async () => {
  const [path, clocks] = [newPath(), new Hands()]
  await open(path, clocks).cover({ end: clocks.now + 15_000, token: 1 })
  clocks.wallNow += 86_400_000
  expect(nextRun(path, clocks).wait).toBeGreaterThanOrEqual(15_000)
})

it('is not fooled by the uptime of another container of the same machine', async () => {
  const [path, clocks] = [newPath(), new Hands()]
  await open(path, clocks).cover({ end: clocks.now + 15_000, token: 1 })
  clocks.upNow += 86_400_000
  expect(nextRun(path, clocks).wait).toBeGreaterThanOrEqual(15_000)
})

it('waits for what either clock waits for where nobody can tell which boot this is', async () => {
  const [path, clocks] = [newPath(), new Hands()]
  clocks.boot = null
  await open(path, clocks).cover({ end: clocks.now + 15_000, token: 1 })
  clocks.wallNow += 3_600_000
  expect(nextRun(path, clocks).wait).toBeGreaterThanOrEqual(15_000)
  clocks.upNow += 20_000
  expect(nextRun(path, clocks).wait).toBe(0)
})

it('counts by wall time after a reboot, and never waits longer than was promised', async () => {
  const [path, clocks] = [newPath(), new Hands()]
  await open(path, clocks).cover({ end: clocks.now + 15_000, token: 1 })
  clocks.boot = 'boot-2'
  clocks.upNow = 10
  clocks.wallNow += 10_000
  const { wait } = nextRun(path, clocks)
  expect(wait).toBeGreaterThanOrEqual(5000)
  expect(wait).toBeLessThan(10_000)
  clocks.wallNow -= 86_400_000
  expect(nextRun(path, clocks).wait).toBeLessThan(20_000)
})

it('comes back when a long lease is gone, but not below what is held or the former run left', async () => {
  const [path, clocks] = [newPath(), new Hands()]
  const horizon = open(path, clocks)
  await horizon.cover({ end: clocks.now + 3_600_000, token: 1 })
  horizon.lower(clocks.now + 20_000, clocks.now)
  clocks.pass(6000)
  horizon.lower(clocks.now + 20_000, clocks.now)
  clocks.pass(6000)
  await eventually('it is lowered', () => {
    horizon.lower(clocks.now + 20_000, clocks.now)
    return nextRun(path, clocks).wait < 30_000
  })
  expect(nextRun(path, clocks).wait).toBeGreaterThanOrEqual(20_000)
  // A promise beyond it has to wait for the disk again.
  const long = horizon.cover({ end: clocks.now + 60_000, token: 1 })
  expect(long).not.toBeNull()
  await long

  const second = open(path, clocks)
  await second.settleAt(0)
  expect(nextRun(path, clocks).wait).toBeGreaterThanOrEqual(60_000)
})

it('makes no promise that cannot be written, and tries again with the next one', async () => {
  const clocks = new Hands()
  const folder = join(temporaryFolder(), 'state')
  const store = embedded(join(folder, 'state.json'), clocks)
  afterwards(() => store.close())
  // A file where the folder should be.
  writeFileSync(folder, '')
  expect(await store.claim(request('a', '1'), 1000)).toMatchObject({ kind: 'unknown' })
  expect(await store.renew([{ ...request('a', '1'), tokens: 0 }], 1000)).toMatchObject([{ kind: 'unknown' }])
  rmSync(folder)
  expect(await store.claim(request('a', '1'), 1000)).toMatchObject({ kind: 'held' })
})

it('refuses a file that another server writes, or that is none', async () => {
  const [path, clocks] = [newPath(), new Hands()]
  const mine = open(path, clocks)
  await mine.cover({ end: clocks.now + 1000, token: 1 })
  const other = open(path, clocks)
  await other.cover({ end: clocks.now + 60_000, token: 1 })
  await expect(mine.cover({ end: clocks.now + 120_000, token: 1 })).rejects.toThrow('another lock server')
  expect(onDisk(path).span).toBeGreaterThan(60_000)
  for (const text of [
    '',
    '{}',
    'null',
    '{"writer":"x","boot":null,"uptime":"1","wall":1,"span":1,"token":1}',
  ]) {
    writeFileSync(path, text)
    expect(() => open(path, clocks), `${text}`).toThrow('not a state file')
  }
})

const request = (name: string, number: string, more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  name,
  id: `session.${number}`,
  weight: 1,
  capacity: 1,
  ttl: 10_000,
  patience: 5000,
  tokens: 1,
  whenBusy: 'queue',
  owner: 'me',
  ...more,
})

it('covers claims, renewals, hand-overs and pushed grants, and keeps tokens growing when the clock went back', async () => {
  const [path, clocks] = [newPath(), new Hands()]
  const store = embedded(path, clocks)
  const covered = (ttl: number, token: bigint): void => {
    const { wait, floor } = nextRun(path, clocks)
    expect(wait).toBeGreaterThanOrEqual(ttl)
    expect(BigInt(floor)).toBeGreaterThanOrEqual(token)
  }
  const first = await store.claim(request('a', '1'), 1000)
  if (first.kind !== 'held') throw new Error(first.kind)
  covered(10_000, first.token)
  await store.renew([{ ...request('a', '1'), ttl: 60_000, tokens: 0 }], 1000)
  covered(60_000, first.token)
  const told: StoreEvent[] = []
  store.watch('session', (event) => void told.push(event), 1000)
  await store.claim(request('a', '2', { ttl: 200_000, patience: 200_000 }), 1000)
  const { next } = await store.release(request('a', '1'), request('a', '3', { ttl: 300_000 }), 1000)
  expect(next).toMatchObject({ kind: 'queued' })
  await eventually('the waiter is told', () => told.some(({ kind }) => kind === 'granted'))
  const granted = told.find((event) => event.kind === 'granted')
  if (granted?.kind !== 'granted') throw new Error('not told')
  covered(200_000, granted.token)
  const fused = await store.release(request('a', '2'), request('a', '4', { ttl: 400_000 }), 1000)
  expect(fused.next).toMatchObject({ kind: 'queued' })
  await store.release(request('a', '4'), undefined, 1000)
  await store.release(request('a', '3'), undefined, 1000)
  const alone = await store.claim(request('a', '5', { ttl: 500_000, tokens: 1000 }), 1000)
  if (alone.kind !== 'held') throw new Error(alone.kind)
  covered(500_000, alone.token + 999n)
  await store.close()

  // A clock that was set back by a day, and a new run.
  clocks.wallNow -= 86_400_000
  const second = embedded(path, clocks)
  await second.release(request('a', '5'), undefined, 1000)
  const later = await second.claim(request('a', '6'), 1000)
  if (later.kind !== 'held') throw new Error(later.kind)
  expect(later.token).toBeGreaterThan(alone.token + 999n)
  await second.close()
})

it('grants nothing while leases of the former run may be believed in, says so, and then begins', async () => {
  const path = newPath()
  const before = open(path, realClocks())
  await before.cover({ end: performance.now(), token: 1 })
  const server = await serve({ state: path })
  expect(server.startsIn).toBeGreaterThan(1000)
  const health = await call(server, 'GET /v1/health')
  expect([health.status, health.body]).toMatchObject([200, { status: 'starting' }])
  // Nor that nobody holds something, which it cannot know.
  for (const [line, sent] of [
    ['GET /v1/ready'],
    ['POST /v1/acquire', { name: 'a', wait: 60_000 }],
    ['GET /v1/locks/a'],
    ['GET /v1/locks'],
    ['POST /v1/force-release', { name: 'a', reason: 'it hangs' }],
  ] as const) {
    const { status, headers, body } = await call(server, line, sent === undefined ? {} : { body: sent })
    expect([status, body.error.code]).toEqual([503, 'STARTING'])
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1)
  }
  await server.ready
  expect((await call(server, 'GET /v1/ready')).status).toBe(200)
  expect((await call(server, 'POST /v1/acquire', { body: { name: 'a' } })).status).toBe(200)
}, 20_000)

function realClocks(): Clocks {
  const clocks = new Hands()
  clocks.mono = () => performance.now()
  clocks.wall = () => Date.now()
  clocks.boot = null
  return clocks
}
