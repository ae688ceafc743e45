import { randomInt } from 'node:crypto'

import { describe, expect, it } from 'vitest'

import { explain, play, print, programFrom, shrinkProgram } from '../../src/lab/sim/programs/index.ts'
import { Witness } from '../../src/lab/sim/programs/witness.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { sharedStore } from '../../src/testkit/shared-store.ts'
import { regressions } from './regressions.ts'
import type { Played, Program, Section, Step } from '../../src/lab/sim/programs/index.ts'

/** More of them, or the same again: PROGRAM_SEEDS=10000 PROGRAM_FIRST=42 npx vitest run test/property/programs.test.ts */
const SEEDS = Number(process.env.PROGRAM_SEEDS ?? 300)
const FIRST = Number(process.env.PROGRAM_FIRST ?? randomInt(2 ** 31))
/** Always the same ones. */
const FIXED = 2700
const TIMEOUT = 60_000 + (FIXED + SEEDS) * 40

/** What broke first, shortened, in words. */
async function sweep(first: number, count: number): Promise<string | undefined> {
  for (let seed = first; seed < first + count; seed++) {
    const { findings, program } = await play(programFrom(seed))
    const [broken] = findings
    if (broken !== undefined) return explain(await shrinkProgram(program, broken.check), broken.check)
  }
  return undefined
}

describe('small random programs against the whole public API', () => {
  it(`keep every promise, ${FIXED} that are always the same`, { timeout: TIMEOUT }, async () => {
    expect(await sweep(1, FIXED)).toBeUndefined()
  })

  it(`keep every promise, ${SEEDS} from ${FIRST} on`, { timeout: TIMEOUT }, async () => {
    expect(await sweep(FIRST, SEEDS)).toBeUndefined()
  })
})

describe('a program that once broke a promise keeps it', () => {
  it.each(regressions)('%s', async (_, program) => {
    // Latencies and the order of timers come from the seed, and decide whether it would break.
    for (let seed = 1; seed <= 40; seed++) {
      const { findings } = await play({ ...program, seed })
      expect({ seed, findings }).toEqual({ seed, findings: [] })
    }
  })
})

describe('the witness of what a store is asked', () => {
  it('hands on what a broken store answers, also nothing: what looks like an answer would be believed', () => {
    const store = { ...sharedStore(memoryStore()), downgrade: () => undefined as never }
    const { downgrade } = new Witness(() => 0).before(store)
    expect(downgrade?.({ name: 'x', id: 'p.0' }, 100)).toBeUndefined()
  })
})

describe('a program', () => {
  it('is the same for the same seed, and so is its run', async () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const [once, again] = [await play(programFrom(seed)), await play(programFrom(seed))]
      expect(print(again.program)).toBe(print(once.program))
      expect(again.log).toEqual(once.log)
      expect(again.findings).toEqual(once.findings)
    }
  })

  it('uses everything there is, in some seed or other', () => {
    const programs = Array.from({ length: 400 }, (_, seed) => programFrom(seed))
    const sections = programs.flatMap(({ tasks }) => tasks.flatMap(({ steps }) => sectionsIn(steps)))
    const steps = programs.flatMap(({ tasks }) => tasks.flatMap((task) => task.steps))
    const some = (is: (section: Section) => boolean): void => expect(sections.some(is)).toBe(true)
    for (const how of ['run', 'acquire', 'try']) some((each) => each.how === how)
    for (const key of [
      'all',
      'wait',
      'ttl',
      'permits',
      'maxHold',
      'abort',
      'sharedSignal',
      'atLock',
      'throws',
    ] as const)
      some((each) => each[key] !== undefined)
    for (const mode of ['mutex', 'read', 'write', 'permits'])
      some(({ locks }) => locks.some((lock) => lock.mode === mode))
    for (const key of ['key', 'reentrant', 'renew', 'ttl'] as const)
      some(({ locks }) => locks.some((lock) => lock[key] !== undefined))
    for (const end of ['release', 'twice', 'dispose', 'never']) some((each) => each.end === end)
    for (const inside of ['detach', 'downgrade', 'lock'])
      some((each) => each.inside.some((step) => step.do === inside))
    some(({ wait }) => wait === 0)
    for (const what of ['inspect', 'list', 'sleep', 'force'])
      expect(steps.some((each) => each.do === what)).toBe(true)
    expect(new Set(programs.map(({ world }) => world))).toEqual(new Set(['direct', 'calm', 'stormy']))
    expect(programs.some(({ closes }) => closes.length > 0)).toBe(true)
    expect(programs.some(({ closes }) => closes.some(({ dispose }) => dispose === true))).toBe(true)
    expect(programs.some((program) => program.deaf === true)).toBe(true)
    const faults = new Set(programs.flatMap((each) => each.faults.map(({ kind }) => kind)))
    expect(faults).toEqual(new Set(['delay', 'loss', 'duplicate', 'echo']))
  })

  it('really happens: locks are held, refused, waited for in vain, aborted, lost and shared', async () => {
    const seen = new Set<string>()
    for (let seed = 1; seed <= 150; seed++) {
      const { trace } = await play(programFrom(seed))
      for (const { end, error } of trace.calls) seen.add(error ?? end ?? 'pending')
      for (const { lost, inside, readsFrom } of trace.grants) {
        if (lost) seen.add('lost')
        if (inside !== undefined) seen.add('nested')
        if (readsFrom !== undefined) seen.add('downgraded')
      }
    }
    for (const what of ['granted', 'refused', 'LOCK_TIMEOUT', 'LOCK_ABORTED', 'LOCK_REENTRY', 'CLOSED'])
      expect(seen).toContain(what)
    for (const what of ['lost', 'nested', 'downgraded']) expect(seen).toContain(what)
  })

  it('that breaks a promise is shortened to what it needs, and printed', async () => {
    const hold: Section = {
      do: 'lock',
      locks: [{ name: 'x', mode: 'mutex' }],
      how: 'acquire',
      times: 1,
      wait: 50,
      inside: [],
      end: 'never',
    }
    const wait: Section = { ...hold, end: 'release' }
    const program: Program = {
      seed: 1,
      world: 'calm',
      processes: 2,
      ttl: 600,
      fair: 'turns',
      tasks: [
        { process: 0, at: 0, steps: [hold, { do: 'sleep', ms: 5 }] },
        { process: 1, at: 10, steps: [{ do: 'list' }, wait] },
        { process: 1, at: 0, steps: [{ do: 'sleep', ms: 5 }] },
      ],
      closes: [],
      faults: [],
    }
    // Nobody promises that a waiter does not wait in vain: it stands for what should not happen.
    const timedOut = ({ trace }: Played): boolean => trace.calls.some(({ error }) => error === 'LOCK_TIMEOUT')
    const short = await shrinkProgram(program, timedOut)
    expect(timedOut(short)).toBe(true)
    expect(short.program.tasks.flatMap(({ steps }) => steps)).toEqual([hold, wait])
    expect(short.program.world).toBe('direct')
    expect(print(short.program).split('\n')).toHaveLength(3)
  })
})

function sectionsIn(steps: readonly Step[]): Section[] {
  return steps.flatMap((step) => {
    if (step.do === 'detach') return sectionsIn(step.steps)
    return step.do === 'lock' ? [step, ...sectionsIn(step.inside)] : []
  })
}
