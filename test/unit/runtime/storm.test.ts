import { describe, expect, it } from 'vitest'

import { HoldfastError } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import { Random } from '../../../src/testkit/random.ts'
import { isClean, world } from './far-store.ts'
import type { Method, Process } from './far-store.ts'

/**
 * Many tasks of several processes on few names, while requests, replies and messages are delayed and lost and processes
 * stand still for longer than their leases last. Whatever happens: no two believe at once, tokens only grow, and when the storm is over everybody gets through and nothing is
 * left.
 */

/** More of them: STORM_SEEDS=20000 npx vitest run test/unit/runtime/storm.test.ts */
const SEEDS = Number(process.env.STORM_SEEDS ?? 300)
const FIRST = Number(process.env.STORM_FIRST ?? 1)
const NAMES = ['p', 'q']
const METHODS: (Method | 'any')[] = ['claim', 'renew', 'release', 'withdraw', 'watch', 'any']

class Witness {
  readonly inside = new Map<string, { lease: Lease; writer: boolean }[]>()
  readonly highest = new Map<string, bigint>()
  readonly violations: string[] = []
  sections = 0

  enter(lease: Lease, writer: boolean): void {
    if (!lease.held) return
    this.sections++
    const others = (this.inside.get(lease.name) ?? []).filter((other) => other.lease.held)
    if (others.some((other) => writer || other.writer)) this.violations.push(`two in ${lease.name}`)
    this.inside.set(lease.name, [...others, { lease, writer }])
    const last = this.highest.get(lease.name) ?? 0n
    if (writer && lease.token <= last)
      this.violations.push(`token ${lease.token} after ${last} of ${lease.name}`)
    if (lease.token > last) this.highest.set(lease.name, lease.token)
  }

  leave(lease: Lease): void {
    this.inside.set(
      lease.name,
      (this.inside.get(lease.name) ?? []).filter((other) => other.lease !== lease),
    )
  }
}

async function task(random: Random, { holdfast, env }: Process, witness: Witness): Promise<void> {
  for (let round = 0; round < 6; round++) {
    const name = NAMES[random.below(NAMES.length)] ?? 'p'
    const writer = random.next() < 0.7
    const { read, write } = holdfast.readWriteLock(name)
    const controller = new AbortController()
    if (random.next() < 0.2) env.setTimer(() => controller.abort(), random.below(3000), true)
    try {
      const lock = writer ? write : read
      const wait = random.next() < 0.3 ? random.below(2000) : 60_000
      const lease = await lock.acquire({ signal: controller.signal, wait })
      witness.enter(lease, writer)
      await env.sleep(random.next() < 0.8 ? random.below(5) : random.below(2500))
      witness.leave(lease)
      await lease.release()
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
    }
    if (random.next() < 0.5) await env.sleep(random.below(50))
  }
}

function weather(random: Random, { store, env }: Process): void {
  store.there = random.below(random.next() < 0.2 ? 300 : 5)
  store.back = random.below(random.next() < 0.2 ? 300 : 5)
  store.events = random.next() < 0.2 ? Infinity : random.below(20)
  if (random.next() < 0.4) {
    const method = METHODS[random.below(METHODS.length)] ?? 'any'
    store.lose(method, random.next() < 0.5 ? 'request' : 'reply', 1 + random.below(4))
  }
  if (random.next() < 0.1) store.gap()
  if (random.next() < 0.1) env.pause(random.below(4000))
}

async function storm(seed: number): Promise<Witness> {
  const random = new Random(seed)
  const w = world()
  const witness = new Witness()
  const fair = random.next() < 0.5 ? 'strict' : 'turns'
  const processes = Array.from({ length: 3 }, () =>
    w.process({ ttl: 2000, patience: 900, requestTimeout: 400, fair }),
  )
  const tasks = processes.flatMap((process) => [1, 2, 3].map(() => task(random, process, witness)))
  for (let gust = 0; gust < 40; gust++) {
    for (const process of processes) weather(random, process)
    await w.env.advance(random.below(400))
  }
  for (const { store } of processes) {
    store.heal()
    store.there = store.back = store.events = 0
  }
  await w.env.until(Promise.all(tasks), 600_000)
  await w.env.runUntilIdle()
  for (const { holdfast } of processes) await w.env.until(holdfast.close())
  for (const name of NAMES) if (!(await isClean(w, name))) witness.violations.push(`${name} is left behind`)
  if (w.env.foregroundTimers > 0) witness.violations.push('a timer is left behind')
  return witness
}

describe('a storm', () => {
  it(`of lost and late messages and stopped processes breaks nothing, for ${SEEDS} seeds`, async () => {
    let sections = 0
    for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
      const witness = await storm(seed)
      expect({ seed, violations: witness.violations }).toEqual({ seed, violations: [] })
      sections += witness.sections
    }
    expect(sections).toBeGreaterThan(SEEDS * 30)
  })
})
