import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'

import { dutiesOf } from '../../../src/lab/live/judgement.ts'
import { judgeAgain, nemesis, runCell, toJson } from '../../../src/lab/live/index.ts'
import type { Stage } from '../../../src/lab/live/index.ts'
import type { RunRecord, ViolationRecord } from '../../../src/lab/record.ts'
import { exitCode, pileOf, tally } from '../../../src/lab/report/tally.ts'
import type { Pile } from '../../../src/lab/report/tally.ts'
import { HoldfastStore } from '../../../src/stores/holdfast/store.ts'
import { lockServer } from '../../cli/cli.ts'

/** A kill matrix for the lab itself: what is planted here has to be found, and named by the check it belongs to. */

const PLANTS = new URL('plants.mjs', import.meta.url).href

// On a machine that is slow it takes longer.
describe('The lab', { timeout: 180_000 }, () => {
  let server: Awaited<ReturnType<typeof lockServer>>
  beforeAll(async () => void (server = await lockServer()))
  afterAll(async () => {
    server.kill('SIGKILL')
    await server.end()
  })

  let runs = 0
  const play = (
    plant: string,
    { ttl = 1000, fault = 'none', ...more }: Partial<Stage> & { fault?: string } = {},
  ): Promise<RunRecord> => {
    const nemeses = fault.split(',').map((kind) => {
      const one = nemesis(kind)
      if (one === undefined) throw new Error(`there is no fault "${kind}"`)
      return one
    })
    runs += 1
    const stage = {
      store: 'holdfast',
      url: server.url,
      ttl,
      clients: 3,
      names: [`plant-${runs}:${plant}`] as const,
      library: { url: PLANTS, export: plant },
      ...more,
    }
    return runCell(stage, nemeses, { seed: 1 })
  }

  const inPiles = ({ verdicts }: RunRecord, piles: readonly string[]) =>
    verdicts.filter((verdict) => piles.includes(pileOf(verdict))).map(({ check, why }) => `${check}: ${why}`)
  const unexpected = (record: RunRecord) => inPiles(record, ['unexpected'])
  /**
   * Everything that is said of checks that broke. On a machine that is too busy to say, what must come in time is undecided: no success
   * either, but other things may be told of first.
   */
  const named = (record: RunRecord): string[] => {
    const { verdicts, violations, evidence } = record
    const undecided = evidence === undefined ? [] : dutiesOf(evidence)
    const told = (pile: Pile, from: readonly ViolationRecord[]): string[] =>
      verdicts
        .filter((verdict) => pileOf(verdict) === pile)
        .flatMap(({ check, why }) => [
          `${check}: ${why}`,
          ...from.filter((one) => one.check === check).map(({ message }) => `${check}: ${message}`),
        ])
    return [...told('unexpected', violations), ...told('unknown', undecided)]
  }

  it.concurrent('finds nothing where nothing is planted, and says the same of what it wrote down', async () => {
    const record = await play('sound')
    expect(unexpected(record)).toEqual([])
    const [again] = (JSON.parse(toJson([record])) as RunRecord[]).map(judgeAgain)
    expect(again?.verdicts).toEqual(record.verdicts)
    // Everything was looked at, and nothing left out for want of events; a busy machine may leave something undecided.
    const rest = record.verdicts.filter(({ seen }) => seen !== 'held')
    expect(rest.filter(({ why }) => why?.includes('too slow to say') !== true)).toEqual([])
    expect(exitCode(tally([record]))).toBe(rest.length === 0 ? 0 : 1)
  })

  it.concurrent.each([
    ['clients that die of an exception', 'dies', /^clients: client 1 ended by itself: exit code/],
    ['acquires that reject with a TypeError', 'rejects', /^errors: .*TypeError: planted/],
    ['a close that hangs', 'closeHangs', /^closing: client 1: close\(\) had not ended after/],
    ['a close that throws', 'closeThrows', /^closing: client 1: close\(\) failed with "RangeError/],
    ['releases that are never sent', 'forgetsReleases', /^leftovers: .*".*" is still held by client/],
    ['renewals that nobody made', 'renewsNothing', /^(exclusivity: .* both believe|inspection: )/],
    ['wake-ups three seconds late', 'wakesLate', /^wake-ups: .*".*" was free for/],
    // Where answers are slow there are too few to say how often: then each is late by itself.
    [
      'wake-ups that get lost now and then',
      'losesWakeUps',
      /^(throughput: .*nine of ten should not|wake-ups: .* was free for)/,
    ],
    [
      'a lease that is held until its release is confirmed',
      'heldUntilReleased',
      /^belief: .*after its release/,
    ],
    ['permits that share a token', 'repeatsPermitTokens', /^token order: .* have the same token/],
    ['tries that are always refused', 'refusesTries', /^refusals: .* although nobody was in its way/],
    ['waits that nobody can end', 'goesOnWaiting', /^errors: .*it goes on 1000 ms after it was to end/],
    ['locks that cannot be made', 'throwsAtOnce', /^clients: client \d ended by itself: exit code/],
    [
      'a nested release that ends the lease around it',
      'innerEndsOuter',
      /^errors: .*it ended the lease around it/,
    ],
    ['one client that gets nothing', 'someGetNothing', /^liveness: client 2 was given nothing/],
    ['permits that nobody renews', 'renewsNoPermits', /^renewal: .*lost its lease/],
    [
      'permits that say they are not held',
      'permitsNotHeld',
      /^errors: .*(not held, and that something is left|not held when it was given)/,
    ],
    ['leases that say they last', 'goodForAnHour', /^errors: .*that 3600000 ms are left of it, of 1000/],
    ['leases that do not last', 'neverGoodForLong', /^errors: .*it was good for less than 120 ms/],
    ['an assertHeld that looks at now alone', 'assertsNow', /^errors: .*lasts for less than was asked/],
    [
      'writers that go on as readers late',
      'downgradesLate',
      /^errors: .*downgrade failed with "it was not answered/,
    ],
    [
      'nested acquires that take long',
      'nestsLate',
      /^errors: .*a nested acquire failed with "it was not answered/,
    ],
    [
      'leases that are lost when they are given',
      'deadOnArrival',
      /^errors: .*(gave back what was lost|not held when it was given)/,
    ],
    ['waits that end with nothing', 'endsWithNothing', /^errors: .*without a lease and without an error/],
    ['short waits that blame the store', 'blamesTheStore', /^errors: .*a short wait failed with/],
    ['tries that wait', 'triesWait', /^errors: .*tryAcquire failed with "it was not answered/],
    [
      'a semaphore with a permit too many',
      'oneTooMany',
      /^exclusivity: .*:meeting:permits" is held 3 of 2 times/,
    ],
    ['leases that are renewed for a while', 'renewsForAWhile', /^renewal: .*lost its lease/],
    [
      'writers that hold nothing when they go on as readers',
      'downgradesToNothing',
      /^inspection: the store does not show that client \d holds/,
    ],
    ['leases on another lock', 'namesAnother', /^errors: .*it says that it is one on "another"/],
    ['tokens that are numbers', 'countsInNumbers', /^errors: .*that its token is a number/],
    ['tokens that change', 'countsOn', /^errors: .*that its token was \d+ and is \d+/],
    [
      'a run that keeps the answer to itself',
      'keepsTheAnswer',
      /^errors: .*run failed with .*did not return what its function did/,
    ],
    ['a run that keeps its lock', 'runKeepsIts', /^errors: .*run failed with .*its lease is still held/],
    ['several permits that count as one', 'countsPermitsAsOne', /^exclusivity: .*:meeting:permits"/],
    ['a close that leaves connections', 'closesNothing', /^closing: .*of its connections were open/],
  ])('finds %s', async (_what, plant, verdict) => {
    const record = await play(plant)
    expect(named(record)).toContainEqual(expect.stringMatching(verdict))
    expect(exitCode(tally([record]))).toBe(1)
  })

  it.concurrent.each([
    ['a signal that never aborts', 'neverAborts', 'partition', /^belief: .*had not aborted/],
    ['clocks that are slow', 'slowClock', 'partition', /^exclusivity: .* both believe/],
    [
      'leases that say they are good for longer than they are',
      'alwaysFull',
      'partition',
      /^belief: .*before it had said/,
    ],
    ['releases of what was lost', 'releasesTheLost', 'pause', /^errors: .*gave back what was lost before/],
    ['a client that dies in line and stays there', 'diesInLine', 'kill', /^(leftovers|liveness): /],
    [
      'what is broken for ever after a fault',
      'neverRecovers',
      'partition',
      /^wake-ups: .* (was free|had room for everybody) for/,
    ],
  ])('finds %s', async (_what, plant, fault, verdict) => {
    const record = await play(plant, { fault, ttl: 2000 })
    expect(named(record)).toContainEqual(expect.stringMatching(verdict))
    expect(exitCode(tally([record]))).toBe(1)
  })

  it.concurrent('finds waits that end before their time, and a run that does not run', async () => {
    const record = await play('givesUpAtOnce')
    const errors = record.violations.filter(({ check }) => check === 'errors').map(({ message }) => message)
    const told = record.evidence?.errors.map(({ call, message }) => `${call} failed with "${message}"`)
    expect(told).toContainEqual(expect.stringMatching(/^acquire failed with .*planted: no answer/))
    expect(errors).toContainEqual(expect.stringMatching(/run failed with .*its function was never called/))
    expect(exitCode(tally([record]))).toBe(1)
  })

  it.concurrent('finds calls that are answered late or not at all, and leases of which nothing is left', async () => {
    const record = await play('vague')
    expect(named(record)).toContainEqual(expect.stringMatching(/^errors: /))
    expect(exitCode(tally([record]))).toBe(1)
    // A machine that is too busy to say leaves what was late undecided. What the clients wrote down is the same on all.
    const { errors = [], history = [] } = record.evidence ?? {}
    const told = errors.map(({ call, message }) => `${call} failed with "${message}"`)
    for (const said of [
      /tryAcquire failed with "it was not answered in 500 ms"/,
      /release failed with "it was not answered in 1000 ms"/,
      /a lease failed with .*that nothing is left of it/,
    ])
      expect(told).toContainEqual(expect.stringMatching(said))
    expect(history).toContainEqual(expect.objectContaining({ kind: 'release', phase: 'info' }))
    // Careful code never writes with such a lease, and the writes of the others are few.
    expect(record.verdicts.find(({ check }) => check === 'exclusivity')?.seen).toBe('held')
  })

  it.concurrent('finds a store that does not list what is held, unless that was lost meanwhile', async () => {
    const list = vi.spyOn(HoldfastStore.prototype, 'list')
    list.mockImplementation(async ({ prefix = '' }) => {
      const late = prefix.startsWith('listsLate') && prefix.endsWith(':permits')
      if (late) await sleep(3000)
      return { names: late || prefix.startsWith('listsNothing') ? [] : [prefix] }
    })
    const [never, late] = await Promise.all([
      play('sound', { names: ['listsNothing'] }),
      play('renewsNoPermits', { names: ['listsLate'] }),
    ])
    list.mockRestore()
    const unlisted = /^inspection: the store does not list ".*", which/
    expect(named(never)).toContainEqual(expect.stringMatching(unlisted))
    expect(exitCode(tally([never]))).toBe(1)
    expect(named(late)).not.toContainEqual(expect.stringMatching(unlisted))
  })

  it.concurrent('finds an assertHeld that says the opposite', async () => {
    const record = await play('assertsWrong')
    const errors = record.violations.filter(({ check }) => check === 'errors').map(({ message }) => message)
    for (const said of [
      /assertHeld failed with .*planted: not held/,
      /assertHeld failed with .*of a lease that was released/,
    ])
      expect(errors).toContainEqual(expect.stringMatching(said))
    expect(exitCode(tally([record]))).toBe(1)
  })

  it.concurrent('finds permits and readers that go one at a time', async () => {
    // Longer than any client is given no processor: a lease that is lost makes room.
    const record = await play('oneAtATime', { ttl: 3000 })
    expect(unexpected(record)).toContainEqual(expect.stringMatching(/^throughput: /))
    // They are made to meet: it takes no luck to see it.
    const found = record.violations.map(({ message }) => message)
    for (const kind of ['rw', 'permits'])
      expect(found).toContainEqual(
        expect.stringMatching(new RegExp(`:meeting:${kind}" was held by \\d and not given to client`)),
      )
    expect(exitCode(tally([record]))).toBe(1)
  })

  it.concurrent('says that a fault was not there, although whatever makes it says so', async () => {
    const nothing = (): Promise<void> => Promise.resolve()
    const deeds = { kill: nothing, restart: nothing, pause: nothing, resume: nothing }
    const port = Number(new URL(server.url).port)
    const idle = { host: '127.0.0.1', port, url: server.url, ...deeds }
    const admin = { dropConnections: nothing }
    const fault = 'server-pause,restart,client-kill'
    const record = await play('sound', { fault, server: idle, admin })
    const faults = record.verdicts.find(({ check }) => check === 'faults')
    expect(faults).toMatchObject({ seen: 'unknown' })
    expect(faults?.why?.replaceAll(/\d+/g, 'n').split('; ')).toEqual([
      'server-pause: clients were given n locks although the server stands still',
      'restart: the server takes connections although it was killed',
      'client-kill: no connection ended although the server was to end all of them',
    ])
    expect(exitCode(tally([record]))).toBe(1)
  })

  it.concurrent('says that a fault was not there where clients reach the store by another way', async () => {
    const url = `${PLANTS}?store=${encodeURIComponent(server.url)}`
    const fault = 'partition,delay'
    const record = await play('goesRound', { fault, ttl: 500, library: { url, export: 'goesRound' } })
    const faults = record.verdicts.find(({ check }) => check === 'faults')
    expect(faults).toMatchObject({ seen: 'unknown' })
    expect(faults?.why).toMatch(
      /^partition: client \d had no connection that could be hurt; delay: client \d had no connection/,
    )
    expect(exitCode(tally([record]))).toBe(1)
  })

  it.concurrent('finds that nobody is given anything, and says of other checks that they were not run', async () => {
    const record = await play('grantsNothing')
    expect(unexpected(record)).toContainEqual(expect.stringMatching(/^liveness: /))
    expect(exitCode(tally([record]))).toBe(1)
    const safety = record.verdicts.filter(({ check }) =>
      /exclusivity|token|linear|lost|fenced|belief/.test(check),
    )
    expect(safety.length).toBeGreaterThan(6)
    for (const { seen } of safety) expect(seen).toBe('not run')
  })
})
