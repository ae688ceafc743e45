import { describe, expect, it } from 'vitest'

import { report } from '../../../src/lab/report/html.ts'
import { laneOf } from '../../../src/lab/report/lanes.ts'
import { runLine, summary } from '../../../src/lab/report/summary.ts'
import type { RunRecord } from '../../../src/lab/record.ts'
import { exitCode, tally } from '../../../src/lab/report/tally.ts'
import { windowOf } from '../../../src/lab/report/window.ts'
import { runAll } from '../../../src/lab/run.ts'
import { calm, crowded, missing, paused } from './records.ts'

describe('The summary', () => {
  it('says what held, what broke as expected, what did not go as said and what was not run', () => {
    const text = summary([paused, calm, missing])
    expect(text).toContain('3 runs; verdicts: 2 held, 1 broke as expected, 1 held, though not promised')
    expect(text).toContain('redis, pause: lost update (2 increments were built on 4)')
    expect(text).toContain(
      'redis, pause: exclusivity: expected "holds", seen "broke". client 1 & client 2 <both> [seed 7]',
    )
    expect(text).toContain('redis, clock-jump: there is no compiler')
    expect(text).toContain('redis, pause: linearizability: the search was given up')
  })

  it('is a success only if nothing was unexpected and nothing undecided', () => {
    expect(exitCode(tally([calm, missing]))).toBe(0)
    expect(exitCode(tally([missing]))).toBe(1)
    expect(exitCode(tally([calm, paused]))).toBe(1)
    const undecided = { ...paused, verdicts: paused.verdicts.filter(({ seen }) => seen === 'unknown') }
    expect(exitCode(tally([calm, undecided]))).toBe(1)
  })

  it('does not take a run that failed itself for one that held', async () => {
    const failing = {
      id: 'live/redis/cut',
      title: 'fails',
      run: () => Promise.reject(new Error('no server')),
    }
    const seen: number[] = []
    const records = await runAll([failing, { id: 'x', title: 'x', run: () => Promise.resolve(calm) }], {
      onProgress: ({ done }) => void seen.push(done),
    })
    expect(records[0]?.verdicts).toMatchObject([{ seen: 'unknown', why: 'no server' }])
    expect(records).toHaveLength(2)
    expect(seen).toEqual([0, 1, 1, 2])
  })

  it('makes what has no lane by itself, then a few lanes at once, and tells of all in their order', async () => {
    const log: string[] = []
    const beside = new Map<string, number>()
    let under = 0
    let most = 0
    const task = (id: string, lane?: string) => ({
      id,
      title: id,
      ...(lane !== undefined && { lane }),
      run: async () => {
        most = Math.max(most, ++under)
        log.push(id)
        await new Promise((resolve) => void setImmediate(resolve))
        beside.set(id, under)
        under -= 1
        return { ...calm, id }
      },
    })
    const lanes = ['a', 'b', 'c', 'd']
    const tasks = [
      ...lanes.flatMap((lane) => [task(`${lane}1`, lane), task(`${lane}2`, lane)]),
      task('alone'),
    ]
    const records = await runAll(tasks)
    expect(records.map(({ id }) => id)).toEqual(tasks.map(({ id }) => id))
    expect(most).toBe(3)
    expect(log[0]).toBe('alone')
    expect(beside.get('alone')).toBe(1)
    for (const lane of lanes) expect(log.indexOf(`${lane}1`)).toBeLessThan(log.indexOf(`${lane}2`))
  })
})

describe('A run that was interrupted', () => {
  it('ends with its signal, and with 1 where something was found before', () => {
    const broke = { check: 'exclusivity', expected: 'holds', seen: 'broke' } as const
    const undecided = { ...broke, seen: 'unknown' } as const
    const ends = (verdicts: RunRecord['verdicts']): number => exitCode(tally([{ ...calm, verdicts }]), 130)
    expect([ends(calm.verdicts), ends([]), ends([undecided]), ends([broke, undecided])]).toEqual([
      130, 130, 130, 1,
    ])
  })

  it('names what was not run', async () => {
    const stop = new AbortController()
    const first = {
      id: 'live/redis/none',
      title: 'first',
      run: () => {
        stop.abort()
        return Promise.resolve(calm)
      },
    }
    const second = { id: 'live/redis/kill', title: 'second', run: () => Promise.reject(new Error('it ran')) }
    const records = await runAll([first, second], { signal: stop.signal })
    expect(records[1]?.verdicts).toMatchObject([
      { check: 'the run itself', seen: 'not run', why: 'the lab was interrupted before' },
    ])
    expect(summary(records)).toContain('redis, kill: the lab was interrupted before')
  })

  it('does not blame what it was told to end in the middle of', async () => {
    const stop = new AbortController()
    const ended = (): Promise<RunRecord> => {
      stop.abort()
      return Promise.reject(new Error('the program was ended by SIGINT'))
    }
    const records = await runAll([{ id: 'x', title: 'x', run: ended }], { signal: stop.signal })
    expect(records[0]?.verdicts).toMatchObject([
      { seen: 'not run', why: 'the lab was interrupted meanwhile: the program was ended by SIGINT' },
    ])
  })
})

describe('One run in a line', () => {
  const specimen = (verdicts: RunRecord['verdicts']): RunRecord => ({
    ...calm,
    id: 'specimen/setnx/flawed',
    title: 'SETNX without expiry',
    verdicts,
  })

  it('says of a flawed design whether it was caught', () => {
    const held = { check: 'exclusivity', expected: 'holds', seen: 'held' } as const
    const liveness = { check: 'liveness', expected: 'breaks' } as const
    expect(runLine(specimen([held, { ...liveness, seen: 'broke' }]))).toBe(
      'SETNX without expiry: caught by liveness',
    )
    expect(runLine(specimen([held, { ...liveness, seen: 'held' }]))).toBe('SETNX without expiry: NOT CAUGHT')
  })

  it('counts in words that tell luck from a promise', () => {
    expect(runLine(calm)).toBe('Redis, nothing happens: 1 held, 1 held, though not promised')
  })
})

describe('A lane', () => {
  it('shows waiting, holding until the belief ended, and what came after it', () => {
    const { spans, marks } = laneOf('client 1', paused.timeline, 2000)
    expect(spans).toMatchObject([
      { kind: 'waiting', from: 10, to: 20, end: 'acquired' },
      { kind: 'held', from: 20, to: 600, token: '1001', end: 'lost', renewals: [100] },
    ])
    expect(marks.map(({ kind }) => kind)).toEqual(['lost', 'write-refused'])
  })

  it('ends an open wait with the run, and an open hold with its validity', () => {
    expect(laneOf('client 2', paused.timeline, 2000).spans.at(-1)).toMatchObject({
      from: 1600,
      to: 2000,
      end: 'open',
    })
    const killed = laneOf('client 1', paused.timeline.slice(0, 2), 2000)
    expect(killed.spans.at(-1)).toMatchObject({ kind: 'held', from: 20, to: 520, end: 'open' })
  })
})

describe('The picture', () => {
  it('draws what lies around the first violation when there is too much to draw', () => {
    const crowd = crowded(9000)
    const window = windowOf({ ...crowd, violations: [{ check: 'exclusivity', message: '', at: 6000 }] })
    expect(window.shown).toBe(1200)
    expect(window.from).toBeLessThan(6000)
    expect(window.to).toBeGreaterThan(6000)
    expect(windowOf(paused)).toMatchObject({ from: 0, to: 2000, shown: paused.timeline.length })
    expect(report([crowd]).length).toBeLessThan(1_000_000)
    expect(report([crowd])).toContain('Drawn: 1200 of 9000 events')
  })
})

describe('The page', () => {
  const html = report([paused, calm, missing], { about: 'redis://localhost' })

  it('shows names and messages as text, whatever they contain', () => {
    expect(html).toContain('client 1 &amp; client 2 &lt;both&gt;')
    expect(html).not.toContain('<both>')
    expect(html).not.toContain('<17>')
  })

  it('counts one of a thing, and gives one length once', () => {
    const faults = [{ at: 100, until: 2126, kind: 'pause', target: 'client 1' }]
    const violations = [{ check: 'exclusivity', message: 'both' }]
    const counts = { grants: 1, respawns: 0, ttl: 2000 }
    const page = report([{ ...paused, clients: ['client 1'], faults, violations, counts }])
    expect(page).toContain('1 client, 1 violation,')
    expect(page).toContain('1 client, 1 fault, 1 violation.')
    expect(page).toContain('1 × pause, 2026 ms<')
    expect(page).not.toContain('2026 ms to 2026 ms')
  })

  it('has no script and fetches nothing', () => {
    expect(html).not.toMatch(/<script|https?:|@import|url\(/)
    expect(html).toContain("default-src 'none'")
  })
})
