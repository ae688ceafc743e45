import { describe, expect, it } from 'vitest'

import { HoldfastError } from '../../../src/index.ts'
import { isClean, world } from '../runtime/far-store.ts'
import type { Loss } from '../runtime/far-store.ts'
import { LATENCY, recipes } from './endings.ts'
import type { Recipe } from './endings.ts'

/** Requests arrive and are answered every 10 ms: on these moments, between them, and after everything. */
const MOMENTS = Array.from({ length: 20 }, (_, n) => n * 5)
const SILENCES: readonly (readonly [Loss, number] | null)[] = [
  null,
  ...MOMENTS.filter((at) => at % LATENCY === 5).flatMap((at) => [
    ['request', at] as const,
    ['reply', at] as const,
  ]),
]
/** One request's time for each of what a recipe asks one after the other. */
const BOUND = 16_000
/** Whatever the store is, a lease of two seconds and what is cleaned up after it are over by then. */
const LONG = 120_000

interface Ending {
  readonly how: 'stop' | 'close'
  readonly at: number
  readonly silence: (typeof SILENCES)[number]
  /** Milliseconds for which somebody else has the locks first. */
  readonly rival: number
}

/** What is wrong with this ending of this recipe. */
async function faults({ names, start }: Recipe, { how, at, silence, rival }: Ending): Promise<string[]> {
  const wrong: string[] = []
  const w = world()
  const process = w.process({ ttl: 2000, wait: 4000 })
  process.store.there = process.store.back = LATENCY
  if (rival > 0) {
    const held = await Promise.all(
      names.map((name) => w.process().holdfast.mutex(name, { ttl: 2000 }).acquire()),
    )
    w.env.setTimer(() => held.forEach((lease) => void lease.release()), rival, true)
  }
  let ended = false
  const { done, stop, check } = start(w, process, () => {
    if (ended) wrong.push('the callback was called after the end')
  })
  const typed = done.then(undefined, (error: unknown) => {
    if (!(error instanceof HoldfastError)) wrong.push(`an error without a type: ${String(error)}`)
  })
  if (silence !== null) {
    const [loss, from] = silence
    w.env.setTimer(() => process.store.lose('any', loss, Infinity), from, true)
  }
  await w.env.advance(at)
  ended = true
  const closing = how === 'close' ? process.holdfast.close() : stop?.()
  const over = Promise.all([typed, how === 'close' ? stop?.() : closing])
  const settled = await w.env
    .until(
      over.then(() => true),
      BOUND,
    )
    .catch(() => false)
  if (!settled) wrong.push(`not over after ${BOUND} ms`)
  await w.env.until(process.holdfast.close(), LONG).catch(() => wrong.push('close() never ends'))
  await w.env
    .runUntilIdle(LONG)
    .catch((error: unknown) => wrong.push(`the process cannot exit: ${String(error)}`))
  process.store.heal()
  await w.env.advance(LONG)
  if (w.env.timers > 0) wrong.push(`${w.env.timers} timers are left`)
  for (const name of names) if (!(await isClean(w, name))) wrong.push(`"${name}" is still held`)
  const broken = check?.()
  if (typeof broken === 'string') wrong.push(broken)
  return wrong
}

function* endings(how: Ending['how']): Iterable<Ending> {
  for (const rival of [0, 35])
    for (const silence of SILENCES) for (const at of MOMENTS) yield { how, at, silence, rival }
}

describe.each(Object.entries(recipes))('%s', (name, recipe) => {
  it.each(
    name.startsWith('once') || name.endsWith('refresh') ? (['close'] as const) : (['stop', 'close'] as const),
  )(
    'ended by %s at any moment, the store silent from any moment, ends in time, typed, and leaves nothing',
    async (how) => {
      const found: string[] = []
      for (const ending of endings(how)) {
        const wrong = await faults(recipe, ending)
        if (wrong.length > 0) found.push(`${JSON.stringify(ending)}: ${wrong.join('; ')}`)
      }
      expect(found).toEqual([])
    },
    60_000,
  )
})
