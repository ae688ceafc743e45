import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

import { Clock } from '../../../src/runtime/clock.ts'
import { Deadline, Deadlines } from '../../../src/runtime/deadlines.ts'
import { JumpWatch } from '../../../src/runtime/jump-watch.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

class Alarm extends Deadline {
  readonly rang: number[] = []
  private readonly effect: (now: number) => void

  constructor(effect: (now: number) => void = () => {}) {
    super()
    this.effect = effect
  }

  due(now: number): void {
    this.rang.push(now)
    this.effect(now)
  }
}

const steady = (env: VirtualEnv) => ({ now: () => env.mono(), onJump: () => {} })

describe('deadlines', () => {
  it('come at their times, each once, in order, on one timer at most', async () => {
    const step = fc.record({
      do: fc.constantFrom('set', 'set', 'set', 'cancel', 'pass'),
      which: fc.nat(5),
      // Who waits for ever has a place in the same list.
      ms: fc.constantFrom(0, 0.5, 1, 3, 10, 25, 100, Infinity),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (run) => {
        const env = new VirtualEnv()
        const deadlines = new Deadlines(steady(env), env, { background: false })
        const order: number[] = []
        const due = new Map<number, number>()
        const alarms = Array.from(
          { length: 6 },
          (_, at) =>
            new Alarm(() => {
              order.push(at)
              expect(env.mono()).toBeGreaterThanOrEqual(due.get(at) ?? Infinity)
              expect(env.mono()).toBeLessThan((due.get(at) ?? -Infinity) + 2)
              due.delete(at)
            }),
        )
        for (const { do: what, which, ms } of run) {
          const alarm = alarms[which] as Alarm
          if (what === 'set') {
            deadlines.set(alarm, env.mono() + ms, ms)
            due.set(which, env.mono() + ms)
          } else if (what === 'cancel') {
            alarm.cancel()
            due.delete(which)
          } else if (ms !== Infinity) await env.advance(ms)
          expect(deadlines.size).toBe(due.size)
          expect(env.timers).toBeLessThanOrEqual(1)
          expect(env.timers).toBeGreaterThanOrEqual(Math.min(due.size, 1))
        }
        await env.advance(200)
        expect([...due.values()].filter((at) => at !== Infinity)).toEqual([])
        for (const alarm of alarms) alarm.cancel()
        deadlines.stop()
        expect(env.timers).toBe(0)
      }),
      { numRuns: 150 },
    )
  })

  it('may go together if they are near for how long they wait', async () => {
    const env = new VirtualEnv()
    const rounds: number[] = []
    const options = { background: true, slack: 0.1, afterwards: () => rounds.push(env.mono()) }
    const deadlines = new Deadlines(steady(env), env, options)
    const [first, near, far] = [new Alarm(), new Alarm(), new Alarm()]
    deadlines.set(first, 100, 100)
    deadlines.set(near, 110, 100)
    deadlines.set(far, 111, 100)
    await env.advance(100)
    expect([first, near, far].map(({ rang }) => rang.length)).toEqual([1, 1, 0])
    await env.advance(11)
    expect(far.rang).toEqual([111])
    expect(rounds).toEqual([100, 111])
  })

  it('that are set by one that is due wait for the next time', async () => {
    const env = new VirtualEnv()
    const deadlines = new Deadlines(steady(env), env, { background: true })
    let times = 0
    const again = new Alarm(() => {
      if (++times < 5) deadlines.set(again, env.mono(), 0)
    })
    deadlines.set(again, 10, 10)
    await env.advance(10)
    expect(times).toBe(1)
    await env.advance(1)
    expect(times).toBe(2)
    await env.advance(10)
    expect(times).toBe(5)
    expect(env.timers).toBe(0)
  })

  it('that are due together let the event loop have its turn in between', async () => {
    const env = new VirtualEnv()
    const deadlines = new Deadlines(steady(env), env, { background: true, atOnce: 3 })
    const alarms = Array.from({ length: 7 }, () => new Alarm())
    for (const alarm of alarms) deadlines.set(alarm, 10, 10)
    const rang = (): number => alarms.filter((alarm) => alarm.rang.length > 0).length
    await env.advance(10)
    expect(rang()).toBe(3)
    await env.advance(1)
    expect(rang()).toBe(6)
    await env.advance(1)
    expect(rang()).toBe(7)
  })

  it('keep the process alive only while there are some, and only if they are to', async () => {
    const env = new VirtualEnv()
    const [front, back] = [false, true].map((background) => new Deadlines(steady(env), env, { background }))
    const [one, other] = [new Alarm(), new Alarm()]
    back?.set(other, 50, 50)
    expect([env.timers, env.foregroundTimers]).toEqual([1, 0])
    front?.set(one, 50, 50)
    expect(env.foregroundTimers).toBe(1)
    one.cancel()
    expect(env.foregroundTimers).toBe(0)
    front?.set(one, 70, 50)
    expect(env.foregroundTimers).toBe(1)
    await env.advance(70)
    expect(one.rang).toHaveLength(1)
    other.cancel()
    back?.stop()
    front?.stop()
    expect(env.timers).toBe(0)
  })

  it('leave no timer behind that would fire for nothing, once they are stopped', () => {
    const env = new VirtualEnv()
    const deadlines = new Deadlines(steady(env), env, { background: true })
    const alarm = new Alarm()
    deadlines.set(alarm, 50, 50)
    alarm.cancel()
    expect(env.timers).toBe(1)
    deadlines.stop()
    expect(env.timers).toBe(0)
  })

  it('that are still there are not stopped', async () => {
    const env = new VirtualEnv()
    const deadlines = new Deadlines(steady(env), env, { background: true })
    const alarm = new Alarm()
    deadlines.set(alarm, 50, 50)
    deadlines.stop()
    await env.advance(50)
    expect(alarm.rang).toEqual([50])
  })

  it('say when the first of them comes, each time that there were none', async () => {
    const env = new VirtualEnv()
    let first = 0
    const deadlines = new Deadlines(steady(env), env, { background: true, onFirst: () => first++ })
    const [one, other] = [new Alarm(), new Alarm()]
    deadlines.set(one, 50, 50)
    deadlines.set(other, 60, 50)
    expect(first).toBe(1)
    await env.advance(60)
    deadlines.set(one, 100, 50)
    expect(first).toBe(2)
  })

  it('may be farther than a timer can wait, and never', async () => {
    const env = new VirtualEnv()
    const deadlines = new Deadlines(steady(env), env, { background: true })
    const [far, never] = [new Alarm(), new Alarm()]
    const month = 31 * 86_400_000
    deadlines.set(never, Infinity, 1)
    deadlines.set(far, month, month)
    await env.advance(month - 1)
    expect(far.rang).toEqual([])
    await env.advance(1)
    expect(far.rang).toEqual([month])
    await env.advance(3 * month)
    expect(never.rang).toEqual([])
  })

  it('are of the list that they were last put in', () => {
    const env = new VirtualEnv()
    const [one, other] = [0, 1].map(() => new Deadlines(steady(env), env, { background: true })) as [
      Deadlines,
      Deadlines,
    ]
    const alarm = new Alarm()
    one.set(alarm, 10, 10)
    other.set(alarm, 20, 10)
    expect([one.size, other.size]).toEqual([0, 1])
    one.delete(alarm)
    expect(other.size).toBe(1)
    alarm.cancel()
    expect(other.size).toBe(0)
  })

  it('by a clock that jumped come at once', async () => {
    const env = new VirtualEnv()
    const clock = new Clock(env)
    const deadlines = new Deadlines(clock, env, { background: true })
    const [soon, late] = [new Alarm(), new Alarm()]
    const start = clock.now()
    deadlines.set(soon, start + 10_000, 10_000)
    deadlines.set(late, start + 50_000, 50_000)
    env.jump({ boot: 20_000, wall: 20_000 })
    clock.now()
    await env.advance(1)
    expect([soon.rang.length, late.rang.length]).toEqual([1, 0])
    await env.advance(30_000)
    expect(late.rang).toHaveLength(1)
  })
})

describe('the clock of leases', () => {
  it('runs with the monotonic one, whatever the wall clock does backwards', () => {
    const env = new VirtualEnv()
    const clock = new Clock(env)
    const start = clock.now()
    env.stall(500)
    expect(clock.now() - start).toBe(500)
    env.jump({ wall: -3_600_000 })
    expect(clock.now() - start).toBe(500)
    env.stall(2_000)
    expect(clock.now() - start).toBe(2_500)
    // Counted from where it was put back to: forward again is forward.
    env.jump({ wall: 1_000 })
    expect(clock.now() - start).toBe(3_500)
    expect(clock.mono).toBe(env.mono())
  })

  it.each([
    ['the wall clock', { wall: 5_000 }],
    ['boot time', { boot: 5_000 }],
    ['both', { wall: 5_000, boot: 5_000 }],
  ])('jumps ahead by what %s jumped, once', (_, jump) => {
    const env = new VirtualEnv()
    // Clocks begin somewhere, and not at the same moment.
    env.stall(12_345)
    const clock = new Clock(env)
    let told = 0
    clock.onJump(() => told++)
    const start = clock.now()
    env.jump(jump)
    env.stall(1_001)
    expect(clock.now() - start).toBe(6_001)
    env.stall(1_001)
    expect(clock.now() - start).toBe(7_002)
    expect(told).toBe(1)
  })

  it('takes the larger of two jumps, and sees each again from where it was', () => {
    const env = new VirtualEnv()
    const clock = new Clock(env)
    const start = clock.now()
    env.jump({ wall: 1_000, boot: 4_000 })
    expect(clock.now() - start).toBe(4_000)
    env.jump({ wall: 2_000, boot: 100 })
    expect(clock.now() - start).toBe(6_000)
    expect(clock.now() - start).toBe(6_000)
  })

  it('takes small differences for noise', () => {
    const env = new VirtualEnv()
    const clock = new Clock(env)
    const start = clock.now()
    env.jump({ wall: 20 })
    expect(clock.now() - start).toBe(0)
    env.jump({ wall: 1 })
    expect(clock.now() - start).toBe(21)
    // And backwards: what is less than a step does not move what is counted from.
    env.jump({ wall: -50 })
    expect(clock.now() - start).toBe(21)
    env.jump({ wall: 70 })
    expect(clock.now() - start).toBe(21)
  })

  it('does not look at the wall clock if it is told not to, and still sees a suspend at once', () => {
    const env = new VirtualEnv()
    const clock = new Clock(env, { wall: false })
    const start = clock.now()
    env.jump({ wall: 5_000 })
    expect(clock.now() - start).toBe(0)
    env.jump({ boot: 300 })
    expect(clock.now() - start).toBe(300)
  })

  it('sees no jump in a boot time of whole seconds, as Bun and Deno tell it, but in one that is longer', () => {
    const env = new VirtualEnv()
    const boot = env.boot.bind(env)
    env.boot = () => Math.floor(boot() / 1000) * 1000
    env.stall(12_900)
    const clock = new Clock(env)
    const start = clock.now()
    for (let at = 0; at < 50; at++) {
      env.stall(120)
      clock.now()
    }
    expect(clock.now() - start).toBe(6_000)
    env.jump({ boot: 5_000 })
    env.stall(1_001)
    expect(clock.now() - start).toBeGreaterThanOrEqual(6_000 + 5_000)
  })

  it('sees a short suspend by a boot time of whole seconds where there is no other witness', () => {
    const env = new VirtualEnv()
    const boot = env.boot.bind(env)
    env.boot = () => Math.floor(boot() / 1000) * 1000
    const clock = new Clock(env, { wall: false })
    const start = clock.now()
    env.jump({ boot: 1_000 })
    expect(clock.now() - start).toBe(1_000)
  })

  it('sees boot time within a second, and does not read it each time', () => {
    const env = new VirtualEnv()
    let reads = 0
    const boot = env.boot.bind(env)
    env.boot = () => {
      reads++
      return boot()
    }
    const clock = new Clock(env)
    for (let at = 0; at < 100; at++) {
      env.stall(100)
      clock.now()
    }
    expect(reads).toBeGreaterThan(8)
    expect(reads).toBeLessThan(13)
  })
})

describe('the watch for jumps', () => {
  const watched = () => ({
    inUse: true,
    watched: false,
    looks: 0,
    look() {
      this.looks++
    },
  })

  it('is one timer for all, which looks twice a second and ends with the last', async () => {
    const env = new VirtualEnv()
    const watch = JumpWatch.of(env)
    expect(JumpWatch.of(env)).toBe(watch)
    expect(JumpWatch.of(new VirtualEnv())).not.toBe(watch)
    const [one, other] = [watched(), watched()]
    watch.add(one)
    watch.add(other)
    expect([one.watched, env.timers, env.foregroundTimers]).toEqual([true, 1, 0])
    await env.advance(2_000)
    expect([one.looks, other.looks]).toEqual([4, 4])
    one.inUse = false
    await env.advance(1_000)
    expect([one.looks, one.watched, other.looks]).toEqual([4, false, 6])
    other.inUse = false
    await env.advance(500)
    expect(env.timers).toBe(0)
    one.inUse = true
    watch.add(one)
    await env.advance(500)
    expect(one.looks).toBe(5)
  })

  it('has one timer also if somebody comes while it looks', async () => {
    const env = new VirtualEnv()
    const watch = JumpWatch.of(env)
    const late = watched()
    const first = { ...watched(), look: () => watch.add(late) }
    watch.add(first)
    await env.advance(500)
    expect(env.timers).toBe(1)
  })
})
