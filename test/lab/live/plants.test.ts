import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { judgeAgain, nemesis, runCell, toJson } from '../../../src/lab/live/index.ts'
import type { RunRecord } from '../../../src/lab/record.ts'
import { exitCode, pileOf, tally } from '../../../src/lab/report/tally.ts'
import { lockServer } from '../../cli/cli.ts'

/** A kill matrix for the lab itself: what is planted here has to be found, and named by the check it belongs to. */

const PLANTS = new URL('plants.mjs', import.meta.url).href

describe('The lab', () => {
  let server: Awaited<ReturnType<typeof lockServer>>
  beforeAll(async () => void (server = await lockServer()))
  afterAll(async () => {
    server.kill('SIGKILL')
    await server.end()
  })

  let runs = 0
  const play = (plant: string, { ttl = 600, fault = 'none' } = {}): Promise<RunRecord> => {
    const one = nemesis(fault)
    if (one === undefined) throw new Error(`there is no fault "${fault}"`)
    runs += 1
    const stage = {
      store: 'holdfast',
      url: server.url,
      ttl,
      clients: 3,
      names: [`plant-${runs}:${plant}`] as const,
      library: { url: PLANTS, export: plant },
    }
    return runCell(stage, [one], { seed: 1 })
  }

  const unexpected = ({ verdicts }: RunRecord) =>
    verdicts.filter((verdict) => pileOf(verdict) === 'unexpected').map(({ check, why }) => `${check}: ${why}`)

  it.concurrent('finds nothing where nothing is planted, and says the same of what it wrote down', async () => {
    const record = await play('sound')
    expect(unexpected(record)).toEqual([])
    expect(exitCode(tally([record]))).toBe(0)
    const [again] = (JSON.parse(toJson([record])) as RunRecord[]).map(judgeAgain)
    expect(again?.verdicts).toEqual(record.verdicts)
    // Everything was looked at: nothing is left out for want of events.
    expect(record.verdicts.filter(({ seen }) => seen !== 'held')).toEqual([])
  })

  it.concurrent.each([
    ['clients that die of an exception', 'dies', /^clients: client 1 ended by itself: exit code/],
    ['acquires that reject with a TypeError', 'rejects', /^errors: .*TypeError: planted/],
    ['a close that hangs', 'closeHangs', /^closing: client 1: close\(\) had not ended after/],
    ['a close that throws', 'closeThrows', /^closing: client 1: close\(\) failed with "RangeError/],
    ['releases that are never sent', 'forgetsReleases', /^leftovers: ".*" is still held by client/],
    ['renewals that nobody made', 'renewsNothing', /^exclusivity: .* both believe/],
    ['wake-ups three seconds late', 'wakesLate', /^wake-ups: ".*" was free for/],
    [
      'a lease that is held until its release is confirmed',
      'heldUntilReleased',
      /^belief: .*after its release/,
    ],
  ])('finds %s', async (_what, plant, verdict) => {
    const record = await play(plant)
    expect(unexpected(record)).toContainEqual(expect.stringMatching(verdict))
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
