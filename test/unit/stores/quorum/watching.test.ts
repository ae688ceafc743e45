import { describe, expect, it } from 'vitest'

import type { Store, StoreEvent, Unknown, Watch } from '../../../../src/core/contract.ts'
import { quorumStore } from '../../../../src/stores/quorum/index.ts'
import { fails, Held, request, SILENT, TIMEOUT, world } from './kit.ts'
import type { Member, World } from './kit.ts'

const FREED: StoreEvent = { kind: 'freed', name: 'x' }

/** A member that lets itself be watched, and says what the test says. */
function speaker({ on }: Member) {
  const listeners: ((event: StoreEvent) => void)[] = []
  let stopped = 0
  on.watch = (_call, _session, listener) => {
    listeners.push(listener as (event: StoreEvent) => void)
    return { kind: 'watching', stop: () => void stopped++ }
  }
  return {
    say: (event: StoreEvent) => listeners.at(-1)?.(event),
    sayToFirst: (event: StoreEvent) => listeners[0]?.(event),
    get watched(): number {
      return listeners.length
    },
    get stopped(): number {
      return stopped
    },
  }
}

interface Heard extends World {
  readonly store: Store
  readonly speakers: readonly ReturnType<typeof speaker>[]
  readonly told: StoreEvent[]
  readonly watch: Watch
}

async function listening(count: number): Promise<Heard> {
  const all = world(count)
  const speakers = all.members.map(speaker)
  const store = quorumStore(all.stores, { setUp: 'now', clock: all.clock })
  const told: StoreEvent[] = []
  const watch = (await store.watch('b', (event) => told.push(event), TIMEOUT)) as Watch
  return { ...all, store, speakers, told, watch }
}

describe('a release, as those hear of it who wait', () => {
  it('is told at once when a majority has said so, and once', async () => {
    const { speakers, told } = await listening(5)
    speakers[0]?.say(FREED)
    speakers[1]?.say(FREED)
    expect(told).toEqual([])
    speakers[2]?.say(FREED)
    expect(told).toEqual([FREED])
    speakers[3]?.say(FREED)
    speakers[4]?.say(FREED)
    expect(told).toEqual([FREED])
  })

  it('is told soon when only one store says so', async () => {
    const { speakers, told, env } = await listening(5)
    speakers[4]?.say(FREED)
    await env.advance(1)
    expect(told).toEqual([])
    await env.advance(5)
    expect(told).toEqual([FREED])
    // What the others say a little later is the same release.
    speakers[0]?.say(FREED)
    speakers[1]?.say(FREED)
    speakers[2]?.say(FREED)
    await env.advance(20)
    expect(told).toEqual([FREED])
    expect(env.timers).toBeGreaterThan(0)
    await env.advance(1_000)
    expect(env.timers).toBe(0)
  })

  it('is another one when a store says it again, or a store says it much later', async () => {
    const { speakers, told, env } = await listening(3)
    speakers[0]?.say(FREED)
    speakers[1]?.say(FREED)
    expect(told).toHaveLength(1)
    speakers[0]?.say(FREED)
    expect(env.timers).toBe(1)
    await env.advance(5)
    expect(told).toHaveLength(2)
    await env.advance(1_000)
    speakers[2]?.say(FREED)
    speakers[1]?.say(FREED)
    expect(told).toHaveLength(3)
  })

  it('said twice by one store before anybody was told counts once', async () => {
    const { speakers, told } = await listening(5)
    for (let times = 0; times < 5; times++) speakers[0]?.say(FREED)
    expect(told).toEqual([])
    speakers[1]?.say(FREED)
    expect(told).toEqual([])
    speakers[2]?.say(FREED)
    expect(told).toEqual([FREED])
  })

  it('is counted by name', async () => {
    const { speakers, told, env } = await listening(3)
    speakers[0]?.say(FREED)
    speakers[1]?.say({ kind: 'freed', name: 'y' })
    expect(told).toEqual([])
    await env.advance(5)
    expect(told).toHaveLength(2)
    expect(told).toEqual(expect.arrayContaining([FREED, { kind: 'freed', name: 'y' }]))
  })

  it('is told beside everything else, which is told as it comes', async () => {
    const { speakers, told } = await listening(3)
    const contended: StoreEvent = { kind: 'contended', name: 'x', id: 'b.1' }
    speakers[0]?.say(contended)
    speakers[1]?.say({ kind: 'gap' })
    expect(told).toEqual([contended, { kind: 'gap' }])
  })
})

describe('who listens', () => {
  it('hears nothing any more when it has stopped, and no store has it as a listener', async () => {
    const { speakers, told, watch, env } = await listening(3)
    speakers[0]?.say(FREED)
    watch.stop()
    speakers[1]?.say(FREED)
    speakers[1]?.say({ kind: 'gap' })
    await env.advance(1_000)
    expect(told).toEqual([])
    expect(speakers.map(({ stopped }) => stopped)).toEqual([1, 1, 1])
    expect(env.timers).toBe(0)
  })

  it('hears nothing any more when the store is closed', async () => {
    const { speakers, told, store, env } = await listening(3)
    speakers[0]?.say(FREED)
    await store.close()
    speakers[1]?.say(FREED)
    await env.advance(1_000)
    expect(told).toEqual([])
    expect(env.timers).toBe(0)
  })

  it('a second time under one name takes the place of the first, whose end changes nothing', async () => {
    const { speakers, told, store, watch, members } = await listening(3)
    const second: StoreEvent[] = []
    await store.watch('b', (event) => second.push(event), TIMEOUT)
    expect(speakers.map(({ stopped }) => stopped)).toEqual([1, 1, 1])
    speakers[0]?.sayToFirst({ kind: 'gap' })
    speakers[0]?.say({ kind: 'gap' })
    expect([told, second]).toEqual([[], [{ kind: 'gap' }]])
    watch.stop()
    speakers[0]?.say({ kind: 'gap' })
    expect(second).toHaveLength(2)
    // It is still known to listen: its claims ask to be told.
    await store.claim(request('x', 'a.1'), TIMEOUT)
    const asked: unknown[] = []
    for (const { on } of members) on.vote = (call, vote) => (asked.push(vote), call())
    await store.claim(request('x', 'b.1'), TIMEOUT)
    await store.claim(request('x', 'c.1'), TIMEOUT)
    const interest = asked.map((vote) => (vote as { interest: boolean }).interest)
    expect(interest).toEqual([true, true, true, false, false, false])
  })

  it('under another name is told by itself', async () => {
    const { speakers, told, store, watch } = await listening(3)
    const other: StoreEvent[] = []
    await store.watch('c', (event) => other.push(event), TIMEOUT)
    speakers[0]?.say({ kind: 'gap' })
    expect([told, other]).toEqual([[], [{ kind: 'gap' }]])
    watch.stop()
    speakers[0]?.say({ kind: 'gap' })
    expect(other).toHaveLength(2)
    await store.close()
    speakers[0]?.say({ kind: 'gap' })
    expect(other).toHaveLength(2)
  })
})

describe('to listen', () => {
  it.each([
    [3, 1],
    [4, 1],
    [5, 2],
  ])('works at %i stores while %i of them do not answer', async (count, silent) => {
    const { members, stores, clock, env } = world(count)
    for (const { on } of members.slice(0, silent)) on.watch = fails
    const store = quorumStore(stores, { setUp: 'now', clock })
    expect(await store.watch('b', () => {}, TIMEOUT)).toMatchObject({ kind: 'watching' })
    // They are asked again until they answer, and then no more.
    for (const { on } of members.slice(0, silent)) delete on.watch
    await env.advance(1_000)
    await env.settle()
    const asked = members.map((each) => each.asked.filter((what) => what === 'watch').length)
    expect(asked).toEqual(members.map((_, at) => (at < silent ? 2 : 1)))
    await env.advance(10_000)
    expect(members.map((each) => each.asked.length)).toEqual(asked)
    expect(env.timers).toBe(0)
  })

  it('is tried again and again at a store that stays silent, until it stops', async () => {
    const { members, stores, clock, env } = world(3)
    const [first] = members as [Member]
    first.on.watch = fails
    const store = quorumStore(stores, { setUp: 'now', clock })
    const watch = (await store.watch('b', () => {}, TIMEOUT)) as Watch
    await env.advance(3_500)
    expect(first.asked.length).toBeGreaterThanOrEqual(3)
    const asked = first.asked.length
    watch.stop()
    await env.advance(10_000)
    expect(first.asked).toHaveLength(asked)
    expect(env.timers).toBe(0)
  })

  it('is tried again once a second at all that are silent, however many they are', async () => {
    const { members, stores, clock, env } = world(5)
    const silent = members.slice(0, 2)
    for (const { on } of silent) on.watch = fails
    const store = quorumStore(stores, { setUp: 'now', clock })
    const watch = (await store.watch('b', () => {}, TIMEOUT)) as Watch
    await env.advance(10_500)
    expect(silent.map(({ asked }) => asked.length)).toEqual([11, 11])
    watch.stop()
    expect(env.timers).toBe(0)
  })

  it.each([
    ['the first', 0],
    ['a later', 1_000],
  ])('is not tried again when %s try fails after it has stopped', async (_, ms) => {
    const { members, stores, clock, env } = world(3)
    const [slow] = members as [Member]
    const held = new Held()
    slow.on.watch = ms === 0 ? () => held.steer(() => SILENT) : fails
    const store = quorumStore(stores, { setUp: 'now', clock })
    const watch = (await store.watch('b', () => {}, TIMEOUT)) as Watch
    slow.on.watch = () => held.steer(() => SILENT)
    await env.advance(ms)
    const asked = slow.asked.length
    watch.stop()
    held.release()
    await env.advance(10_000)
    expect(slow.asked).toHaveLength(asked)
    expect(env.timers).toBe(0)
  })

  it('does not wait for those that take their time', async () => {
    const { members, stores, clock, env } = world(3)
    const held = new Held()
    const [slow] = members as [Member]
    const events = speaker(slow)
    const watchIt = slow.on.watch
    slow.on.watch = (call, ...args) => held.steer(() => watchIt?.(call, ...args))
    const store = quorumStore(stores, { setUp: 'now', clock })
    const told: StoreEvent[] = []
    const watch = (await store.watch('b', (event) => told.push(event), TIMEOUT)) as Watch
    expect(watch.kind).toBe('watching')
    held.release()
    await env.settle()
    events.say({ kind: 'gap' })
    expect(told).toEqual([{ kind: 'gap' }])
    expect(env.timers).toBe(0)
    watch.stop()
    expect(events.stopped).toBe(1)
  })

  it('at a store that answers when it is over is stopped there at once', async () => {
    const { members, stores, clock, env } = world(3)
    const held = new Held()
    const [slow] = members as [Member]
    const events = speaker(slow)
    const watchIt = slow.on.watch
    slow.on.watch = (call, ...args) => held.steer(() => watchIt?.(call, ...args))
    const store = quorumStore(stores, { setUp: 'now', clock })
    const watch = (await store.watch('b', () => {}, TIMEOUT)) as Watch
    watch.stop()
    held.release()
    await env.settle()
    expect(events.stopped).toBe(1)
  })

  it.each([
    [3, 2],
    [4, 2],
    [5, 3],
  ])('fails at %i stores while %i of them do not answer, and says so of each', async (count, silent) => {
    const { members, stores, clock, env } = world(count)
    const speakers = members.map(speaker)
    for (const { on } of members.slice(0, silent)) on.watch = fails
    const store = quorumStore(stores, { setUp: 'now', clock })
    const answer = (await store.watch('b', () => {}, TIMEOUT)) as Unknown
    expect(answer).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE' } })
    const { nodes } = answer.cause as { nodes: readonly { state: string }[] }
    expect(nodes.map(({ state }) => state)).toEqual(
      members.map((_, at) => (at < silent ? 'no answer' : 'granted')),
    )
    // Nothing is left of it where it worked.
    expect(speakers.map(({ stopped }) => stopped)).toEqual(members.map((_, at) => (at < silent ? 0 : 1)))
    await env.advance(5_000)
    expect(env.timers).toBe(0)
  })
})
