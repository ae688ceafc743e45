import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  rmdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

import { expect, it } from 'vitest'

import type { ClaimAnswer, ClaimRequest, StoreEvent } from '../../src/core/contract.ts'
import { ClaimsFile } from '../../src/server/embedded/claims-file.ts'
import { HorizonFile } from '../../src/server/embedded/horizon-file.ts'
import { Horizon } from '../../src/server/embedded/horizon.ts'
import { EmbeddedStore } from '../../src/server/embedded/store.ts'
import { Hands } from './hands.ts'
import { afterwards, temporaryFolder } from './helpers.ts'

/** A server's store, as a process has it: what it leaves behind is in files. */
class Machine {
  readonly clocks = new Hands()
  readonly path = join(temporaryFolder(), 'state.json')
  readonly failures: unknown[] = []
  private runs = 0

  start(): EmbeddedStore {
    const { clocks, path } = this
    const file = new HorizonFile(path, `run-${++this.runs}`)
    const onFailure = (failure: unknown): void => void (failure !== null && this.failures.push(failure))
    const horizon = new Horizon({ file, clocks, onWrite: onFailure })
    const store = new EmbeddedStore({ horizon, claims: new ClaimsFile(path), onFailure }, clocks)
    afterwards(() => store.close())
    return store
  }

  get claims(): string {
    return `${this.path}.claims`
  }
}

const request = (name: string, number: string, more: Partial<ClaimRequest> = {}): ClaimRequest => ({
  name,
  id: `session.${number}`,
  weight: 1,
  capacity: 1,
  ttl: 10_000,
  patience: 5000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'me',
  ...more,
})

async function tokenOf(answer: ClaimAnswer | Promise<ClaimAnswer>): Promise<bigint> {
  const settled = await answer
  if (settled.kind !== 'held') throw new Error(settled.kind)
  return settled.token
}

const kindOf = async (answer: ClaimAnswer | Promise<ClaimAnswer>): Promise<string> => (await answer).kind

it('goes on with leases after a planned stop: same holder, same token, the rest of the time, and larger tokens after it', async () => {
  const machine = new Machine()
  const first = machine.start()
  const token = await tokenOf(first.claim(request('a', '1'), 0))
  machine.clocks.pass(3000)
  await first.close()
  machine.clocks.restart(2000)
  const second = machine.start()
  expect(second.startsIn).toBe(0)
  expect(await kindOf(second.claim(request('a', '2'), 0))).toBe('busy')
  expect(second.inspect('a', 0).holders).toMatchObject([{ id: 'session.1', owner: 'me', token }])
  // Five of its ten seconds are left, and not many milliseconds more.
  machine.clocks.pass(4990)
  expect(await kindOf(second.claim(request('a', '2'), 0))).toBe('busy')
  machine.clocks.pass(200)
  expect(await tokenOf(second.claim(request('a', '2'), 0))).toBeGreaterThan(token)
  expect(await tokenOf(second.claim(request('never seen', '3'), 0))).toBeGreaterThan(token)
})

it('keeps renewing, releasing, weights, readers, downgrades and withdrawn ids as they were', async () => {
  const machine = new Machine()
  const first = machine.start()
  const all = 2 ** 31 - 1
  await first.claim(request('semaphore', '1', { weight: 2, capacity: 3 }), 0)
  await first.claim(request('rw', '2', { weight: all, capacity: all }), 0)
  first.downgrade(request('rw', '2'), 0)
  first.withdraw(request('gone', '3'), 0)
  await first.close()
  machine.clocks.restart(100)
  const second = machine.start()
  expect(await kindOf(second.claim(request('semaphore', '4', { weight: 2, capacity: 3 }), 0))).toBe('busy')
  expect(await kindOf(second.claim(request('semaphore', '5', { capacity: 3 }), 0))).toBe('held')
  expect(await kindOf(second.claim(request('semaphore', '6'), 0))).toBe('mismatch')
  expect(await kindOf(second.claim(request('rw', '7', { capacity: all }), 0))).toBe('held')
  expect(await kindOf(second.claim(request('rw', '8', { weight: all, capacity: all }), 0))).toBe('busy')
  expect(await kindOf(second.claim(request('gone', '3'), 0))).toBe('busy')
  expect(await second.renew([{ ...request('semaphore', '1'), tokens: 0 }], 0)).toMatchObject([
    { kind: 'renewed' },
  ])
  expect(await second.release(request('semaphore', '1'), undefined, 0)).toMatchObject({
    released: { kind: 'released' },
  })
})

it('keeps the line: the first is granted first although others come back before it, and learns of it when it asks', async () => {
  const machine = new Machine()
  const first = machine.start()
  const waiting = (session: string): ClaimRequest =>
    request('a', '', { id: `${session}.1`, whenBusy: 'queue' })
  await first.claim(request('a', '1'), 0)
  for (const session of ['early', 'late']) {
    first.watch(session, () => undefined, 0)
    await first.claim(waiting(session), 0)
  }
  await first.close()
  // Longer than their patience: they could not show that they are alive.
  machine.clocks.restart(8000)
  const second = machine.start()
  const told: StoreEvent[] = []
  second.watch('late', (event) => void told.push(event), 0)
  await second.release(request('a', '1'), undefined, 0)
  expect(await second.renew([{ ...waiting('late'), tokens: 1 }], 0)).toMatchObject([{ kind: 'queued' }])
  expect(await second.renew([{ ...waiting('early'), tokens: 1 }], 0)).toMatchObject([{ kind: 'held' }])
  await second.release(waiting('early'), undefined, 0)
  await Promise.resolve()
  expect(told).toMatchObject([{ kind: 'granted', id: 'late.1' }])
})

it.each([
  ['the wall clock was put forward', { wallNow: 86_400_000 }],
  ['the wall clock was set back', { wallNow: -86_400_000 }],
  ['the uptime is that of another container', { upNow: 86_400_000 }],
  ['the uptime began anew', { upNow: -49_000 }],
])('ends no lease early, and keeps tokens growing, when %s', async (_, jump) => {
  const machine = new Machine()
  const first = machine.start()
  const token = await tokenOf(first.claim(request('a', '1'), 0))
  await first.close()
  machine.clocks.restart(2000)
  for (const [hand, by] of Object.entries(jump)) machine.clocks[hand as 'upNow'] += by
  const second = machine.start()
  machine.clocks.pass(7990)
  expect(await kindOf(second.claim(request('a', '2'), 0))).toBe('busy')
  // For as long as it had left at the stop, at most.
  machine.clocks.pass(2100)
  expect(await tokenOf(second.claim(request('a', '2'), 0))).toBeGreaterThan(token)
})

it('frees what ended while it was down', async () => {
  const machine = new Machine()
  const first = machine.start()
  await first.claim(request('a', '1'), 0)
  await first.close()
  machine.clocks.restart(60_000)
  expect(await kindOf(machine.start().claim(request('a', '2'), 0))).toBe('held')
})

it('lets leases last for what they had left after a reboot, whatever the wall clock says', async () => {
  for (const wall of [0, 86_400_000, -86_400_000]) {
    const machine = new Machine()
    const first = machine.start()
    await first.claim(request('a', '1'), 0)
    await first.close()
    machine.clocks.reboot(30_000)
    machine.clocks.wallNow += wall
    // On another machine of a cluster, with a shared disk, the uptime may be anything.
    machine.clocks.upNow = wall === 0 ? 1e9 : 10
    const second = machine.start()
    expect(second.startsIn).toBe(0)
    machine.clocks.pass(9990)
    expect(await kindOf(second.claim(request('a', '2'), 0)), `${wall}`).toBe('busy')
    machine.clocks.pass(20)
    expect(await kindOf(second.claim(request('a', '2'), 0))).toBe('held')
  }
})

it('uses what was written down once: a run that was killed leaves nothing but its horizon', async () => {
  const machine = new Machine()
  const first = machine.start()
  await first.claim(request('a', '1', { ttl: 60_000 }), 0)
  await first.close()
  const saved = readFileSync(machine.claims)
  machine.clocks.restart(100)
  const second = machine.start()
  expect(existsSync(machine.claims)).toBe(false)
  await second.release(request('a', '1'), undefined, 0)
  await tokenOf(second.claim(request('b', '2', { ttl: 20_000 }), 0))
  // Killed here. Somebody even brings the file back.
  writeFileSync(machine.claims, saved, { mode: 0o600 })
  machine.clocks.restart(100)
  const third = machine.start()
  expect(third.former).toBeNull()
  expect(third.startsIn).toBeGreaterThanOrEqual(19_900)
  expect(third.inspect('a', 0).holders).toEqual([])
})

it('is void as soon as the next run has begun, also if that one does nothing at all', async () => {
  const machine = new Machine()
  const first = machine.start()
  await first.claim(request('a', '1'), 0)
  await first.close()
  const saved = readFileSync(machine.claims)
  machine.start()
  writeFileSync(machine.claims, saved, { mode: 0o600 })
  const third = machine.start()
  expect(third.former).toBeNull()
  expect(third.startsIn).toBeGreaterThan(9000)
})

it('does not say that nothing is held when it was stopped while it waited for leases of which it knew nothing', async () => {
  const machine = new Machine()
  await tokenOf(machine.start().claim(request('a', '1', { ttl: 30_000 }), 0))
  // Killed; the next one waits, and is told to stop meanwhile.
  machine.clocks.restart(1000)
  const second = machine.start()
  expect(second.startsIn).toBeGreaterThan(28_000)
  expect(second.remembers).toBe(false)
  await second.close()
  machine.clocks.restart(1000)
  const third = machine.start()
  expect(third.startsIn).toBeGreaterThan(27_000)
  machine.clocks.pass(third.startsIn)
  expect(third.remembers).toBe(true)
})

it.each([
  ['torn', (path: string) => truncateSync(path, 40)],
  ['empty', (path: string) => writeFileSync(path, '')],
  [
    'changed',
    (path: string) => writeFileSync(path, readFileSync(path, 'utf8').replace('session.1', 'session.9')),
  ],
  ['of another stop', (path: string) => writeFileSync(path, '{"version":1,"queues":[],"owners":{}}\n')],
  ['gone', (path: string) => rmSync(path)],
])('waits the leases out when the file is %s', async (_, spoil) => {
  const machine = new Machine()
  const first = machine.start()
  await first.claim(request('a', '1'), 0)
  await first.close()
  spoil(machine.claims)
  machine.clocks.restart(100)
  const second = machine.start()
  expect(second.former).toBeNull()
  expect(second.startsIn).toBeGreaterThan(9000)
  expect(existsSync(machine.claims)).toBe(false)
})

it('waits the leases out when the file is of a later layout', async () => {
  const machine = new Machine()
  const first = machine.start()
  await first.claim(request('a', '1'), 0)
  await first.close()
  const text = readFileSync(machine.claims, 'utf8')
  expect(text).toContain('"version":2')
  const digest = await new ClaimsFile(machine.path).write([text.replace('"version":2', '"version":3')])
  const horizon = JSON.parse(readFileSync(machine.path, 'utf8')) as object
  writeFileSync(machine.path, `${JSON.stringify({ ...horizon, claims: digest })}\n`)
  machine.clocks.restart(100)
  expect(machine.start().startsIn).toBeGreaterThan(9000)
})

it('waits the leases out when the next run cannot write that it has taken them up', async () => {
  const machine = new Machine()
  const first = machine.start()
  await first.claim(request('a', '1'), 0)
  await first.close()
  // A folder where the new file would be made: neither removed as a file nor written.
  mkdirSync(`${machine.path}.new`)
  writeFileSync(join(`${machine.path}.new`, 'full'), '')
  machine.clocks.restart(100)
  const second = machine.start()
  expect(second.former).toBeNull()
  expect(second.startsIn).toBeGreaterThan(9000)
  expect(second.inspect('a', 0).holders).toEqual([])
  expect(machine.failures).not.toEqual([])
})

it.each(['.claims.new', '.new'])(
  'waits the leases out when %s could not be written at the stop, and says so',
  async (suffix) => {
    const machine = new Machine()
    const first = machine.start()
    await first.claim(request('a', '1'), 0)
    const obstacle = `${machine.path}${suffix}`
    mkdirSync(join(obstacle, 'in the way'), { recursive: true })
    await first.close()
    expect(machine.failures).not.toEqual([])
    expect(existsSync(machine.claims)).toBe(false)
    rmdirSync(join(obstacle, 'in the way'))
    rmdirSync(obstacle)
    machine.clocks.restart(100)
    const second = machine.start()
    expect(second.former).toBeNull()
    expect(second.startsIn).toBeGreaterThan(9000)
  },
)

it('leaves nothing of what found no room: the next run needs the disk', async () => {
  const machine = new Machine()
  const file = new ClaimsFile(machine.path)
  function* lines(): Iterable<string> {
    yield `${'x'.repeat(200_000)}\n`
    throw new Error('ENOSPC')
  }
  await expect(file.write(lines())).rejects.toThrow('ENOSPC')
  expect(readdirSync(dirname(machine.path))).toEqual([])
})

it('takes away what a stop that was killed has written', () => {
  const machine = new Machine()
  writeFileSync(`${machine.claims}.new`, 'secrets')
  machine.start()
  expect(readdirSync(dirname(machine.path))).toEqual([])
})

it('is readable by its owner alone, also if somebody had prepared a file for it', async () => {
  const machine = new Machine()
  const first = machine.start()
  await first.claim(request('a', '1'), 0)
  const theirs = join(temporaryFolder(), 'theirs')
  writeFileSync(theirs, '')
  symlinkSync(theirs, `${machine.claims}.new`)
  writeFileSync(`${machine.path}.new`, '')
  chmodSync(`${machine.path}.new`, 0o666)
  await first.close()
  expect(readFileSync(theirs, 'utf8')).toBe('')
  for (const path of [machine.claims, machine.path]) expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readFileSync(machine.claims, 'utf8')).toContain('session.1')
})
