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
  ...MOMENTS.filter((at) => at % (2 * LATENCY) === 5).flatMap((at) => [
    ['request', at] as const,
    ['reply', at] as const,
  ]),
]
/** One request's time for each of what a recipe asks one after the other. */
const BOUND = 16_000
/** The time to drain, the time to tell the store, and the last attempts that are under way by then. */
const CLOSED = 20_000
/** Whatever the store is, a lease of two seconds and what is cleaned up after it are over by then. */
const LONG = 75_000

interface Ending {
  /** `end`: closed without a drain. */
  readonly how: 'stop' | 'close' | 'end'
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
  if (how !== 'stop') process.holdfast.close(how === 'end' ? { drain: 0 } : {}).catch(() => {})
  const over = Promise.all([typed, stop?.()]).then(() => true)
  const settled = await w.env.until(over, BOUND).catch(() => false)
  if (!settled) wrong.push(`not over after ${BOUND} ms`)
  await w.env.until<unknown>(process.holdfast.close(), CLOSED).catch(() => wrong.push('close() never ends'))
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
  for (const rival of [0, 35]) {
    for (const [n, silence] of SILENCES.entries()) {
      for (const [m, at] of MOMENTS.entries()) {
        // Every moment with every second silence: the other ones differ by half a latency.
        if (silence === null || (n + m) % 2 === 0) yield { how, at, silence, rival }
      }
    }
  }
}

describe.each(Object.entries(recipes))('%s', (name, recipe) => {
  it.each(
    name.startsWith('once') || name.endsWith('refresh')
      ? (['close', 'end'] as const)
      : (['stop', 'close', 'end'] as const),
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
