import { describe, expect, it } from 'vitest'

import { LockAbortedError, LockTimeoutError, StoreUnavailableError } from '../../../src/index.ts'
import type { Lease } from '../../../src/index.ts'
import type { ClaimAnswer, ClaimRequest, NameInfo, RenewAnswer } from '../../../src/core/contract.ts'
import { isClean, world } from './far-store.ts'

/** The fields of a claim that are not its own properties. */
const named = ({
  name,
  weight,
  capacity,
  ttl,
  patience,
  owner,
}: ClaimRequest): Omit<ClaimRequest, 'id' | 'tokens' | 'whenBusy'> => ({
  name,
  weight,
  capacity,
  ttl,
  patience,
  owner,
})

const stateOf = (lease: Promise<unknown>): Promise<string> =>
  Promise.race([lease.then(() => 'granted'), Promise.resolve('waiting')])

describe('waiting between processes', () => {
  it('ends with a push from the store, long before the next heartbeat', async () => {
    const { env, process } = world()
    const a = process()
    const b = process()
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    const before = env.mono()
    await env.until(first.release())
    await env.until(second)
    expect(env.mono() - before).toBeLessThanOrEqual(2)
  })

  it('costs the store next to nothing, whatever the number of tasks that wait', async () => {
    const { env, process } = world()
    const a = process()
    const b = process({ wait: Infinity })
    await env.until(a.holdfast.mutex('x').acquire())
    const waits = Array.from({ length: 1000 }, () => b.holdfast.mutex('x').acquire())
    await env.advance(10_000)
    const sent = b.store.count()
    await env.advance(60_000)
    expect((b.store.count() - sent) / 60).toBeLessThan(1)
    expect(waits).toHaveLength(1000)
  })

  it('survives a lost push: the heartbeat finds out', async () => {
    const { env, process } = world()
    const a = process()
    const b = process()
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    b.store.events = Infinity
    await env.until(first.release())
    const before = env.mono()
    const lease = await env.until(second)
    expect(env.mono() - before).toBeLessThan(5000 / 3 + 10)
    expect(lease.held).toBe(true)
  })

  it('survives a broken subscription: every waiter is asked about at once when it is back', async () => {
    const { env, process } = world()
    const a = process()
    const b = process()
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    b.store.events = Infinity
    await env.until(first.release())
    b.store.gap()
    const before = env.mono()
    await env.until(second)
    expect(env.mono() - before).toBeLessThan(5)
  })

  it('asks about thousands of names in a few requests after that', async () => {
    const { env, process } = world()
    const [a, b] = [process(), process()]
    const names = Array.from({ length: 1200 }, (_, index) => `x${index}`)
    await env.until(Promise.all(names.map((name) => a.holdfast.mutex(name).acquire())))
    const waits = Promise.allSettled(names.map((name) => b.holdfast.mutex(name).acquire({ wait: 500 })))
    await env.advance(100)
    const before = b.store.count('renew')
    b.store.gap()
    expect(b.store.count('renew') - before).toBe(3)
    await env.until(waits)
  })

  it('asks for the lock in the same moment in which a task of this process lost it', async () => {
    const { env, process, server } = world()
    const { holdfast, store } = process()
    const first = await env.until(holdfast.mutex('x').acquire())
    const second = holdfast.mutex('x').acquire()
    await env.advance(10)
    const { holders } = (await server.inspect('x', 1000)) as NameInfo
    const id = holders[0]?.id ?? ''
    await server.withdraw({ name: 'x', id }, 1000)
    const before = store.count('claim')
    store.forge({ kind: 'revoked', name: 'x', id })
    expect(first.held).toBe(false)
    expect(store.count('claim') - before).toBe(1)
    await env.until(second)
  })

  it('is not given what was taken away before the answer that says "held" came, and asks anew', async () => {
    const { env, process, server } = world()
    const { holdfast, store } = process()
    // It listens, for somebody waits.
    await env.until(holdfast.mutex('y').acquire())
    const other = holdfast
      .mutex('y')
      .acquire()
      .catch((error: unknown) => error)
    await env.advance(10)
    store.back = 300
    const waits = holdfast.mutex('x').acquire()
    await env.advance(50)
    const { holders } = (await server.inspect('x', 1000)) as NameInfo
    const id = holders[0]?.id ?? ''
    await server.withdraw({ name: 'x', id }, 1000)
    store.forge({ kind: 'revoked', name: 'x', id })
    const theirs = await env.until(process().holdfast.mutex('x').acquire())
    await env.advance(2000)
    expect(theirs.held).toBe(true)
    await theirs.release()
    const lease = await env.until(waits)
    expect(lease.held && lease.token > theirs.token).toBe(true)
    await env.until(holdfast.close({ drain: 0 }))
    expect(await other).toMatchObject({ code: 'CLOSED' })
  })

  it.each([
    ['at once', 'at once'],
    ['at once', 'later'],
    ['later', 'at once'],
    ['later', 'later'],
  ])('nor by a store that answers claims %s and renewals %s', async (claims, renewals) => {
    const { env, process, server } = world()
    const { holdfast, store } = process()
    await env.until(holdfast.mutex('y').acquire())
    const other = holdfast
      .mutex('y')
      .acquire()
      .catch((error: unknown) => error)
    await env.advance(10)
    let theirs: ClaimRequest | null = null
    const handedOn: unknown[] = []
    const answered = <A>(when: string, answer: A): A | Promise<A> =>
      when === 'at once' ? answer : env.sleep(50).then(() => answer)
    store.claim = (request, timeout) => {
      const answer = server.claim(request, timeout)
      if (theirs === null) {
        const { name, id } = request
        store.forge({ kind: 'revoked', name, id })
        theirs = { ...request, id: 'theirs.0', ttl: 1000 }
        handedOn.push(server.withdraw({ name, id }, timeout), server.claim(theirs, timeout))
      }
      return answered(claims, answer as ClaimAnswer)
    }
    store.renew = (requests, timeout) =>
      answered(renewals, server.renew(requests, timeout) as readonly RenewAnswer[])
    let given = false
    const waits = holdfast
      .mutex('x')
      .acquire()
      .finally(() => (given = true))
    await env.advance(500)
    expect(handedOn).toMatchObject([{ kind: 'released' }, { kind: 'held' }])
    expect(await server.inspect('x', 1000)).toMatchObject({ holders: [{ id: 'theirs.0' }] })
    expect(given).toBe(false)
    expect((await env.until(waits)).held).toBe(true)
    await env.until(holdfast.close({ drain: 0 }))
    expect(await other).toMatchObject({ code: 'CLOSED' })
  })

  it('keeps its place although somebody says that it was taken away', async () => {
    const { env, process, server } = world()
    const [a, b, c] = [process(), process(), process()]
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    const third = c.holdfast.mutex('x').acquire()
    await env.advance(100)
    const { waiters } = (await server.inspect('x', 1000)) as NameInfo
    b.store.forge({ kind: 'revoked', name: 'x', id: waiters[0]?.id ?? '' })
    await env.advance(100)
    expect(await server.inspect('x', 1000)).toMatchObject({ waiters: waiters.map(({ id }) => ({ id })) })
    await env.until(first.release())
    await env.until((await env.until(second)).release())
    await env.until(third)
  })

  it('asks often again when the lock has had another holder meanwhile', async () => {
    const { env, process } = world({ queue: false, wakeups: 'poll' })
    const { holdfast, store } = process()
    let mark = 'a'
    store.claim = () => {
      store.sent.push({ method: 'claim', size: 1 })
      return { kind: 'busy', mark }
    }
    const waits = Promise.allSettled([holdfast.mutex('x').acquire({ wait: 60_000 })])
    const askedIn = async (ms: number): Promise<number> => {
      const before = store.count('claim')
      await env.advance(ms)
      return store.count('claim') - before
    }
    const often = await askedIn(5_000)
    await env.advance(20_000)
    const seldom = await askedIn(5_000)
    expect(seldom).toBeLessThan(often)
    for (mark of ['b', 'c', 'd']) expect(await askedIn(5_000)).toBeGreaterThan((seldom + often) / 2)
    await env.until(waits)
  })

  it('asks once, however often the subscription breaks before the answer', async () => {
    const { env, process } = world()
    const [a, b] = [process(), process()]
    await env.until(a.holdfast.mutex('x').acquire())
    const waits = Promise.allSettled([b.holdfast.mutex('x').acquire({ wait: 800 })])
    await env.advance(100)
    b.store.back = 300
    const before = b.store.count('renew')
    for (let times = 0; times < 5; times++) b.store.gap()
    expect(b.store.count('renew') - before).toBe(1)
    await env.until(waits)
  })

  it('sets no timers while the store takes its time to answer', async () => {
    const { env, process } = world()
    const [a, b] = [process(), process()]
    await env.until(a.holdfast.mutex('x').acquire())
    const waits = Promise.allSettled([b.holdfast.mutex('x').acquire({ wait: 900 })])
    await env.advance(100)
    b.store.back = 800
    b.store.gap()
    const setTimer = b.env.setTimer.bind(b.env)
    let timers = 0
    b.env.setTimer = (...args) => {
      timers++
      return setTimer(...args)
    }
    await env.advance(700)
    expect(timers).toBeLessThan(10)
    await env.until(waits)
  })

  it('takes a push that overtakes the answer to its own request', async () => {
    const { env, process } = world()
    const a = process()
    const b = process()
    const first = await env.until(a.holdfast.mutex('x').acquire())
    // The first contention makes b listen; from then on its claims queue at once.
    const warm = b.holdfast.mutex('x').acquire({ wait: 50 })
    await expect(env.until(warm)).rejects.toBeInstanceOf(LockTimeoutError)
    b.store.back = 500
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(10)
    await env.until(first.release())
    const lease = await env.until(second)
    expect(lease.held).toBe(true)
    // It counts from the question that confirmed it, whose answer took half a second.
    expect(lease.remaining()).toBeLessThan(15_000 - 500)
  })

  it('does not end with a push that was read after its pick-up time', async () => {
    const { env, process } = world()
    const a = process()
    const b = process()
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(1000)
    b.store.events = 4500
    await env.until(first.release())
    // b stands still while the grant is on its way and its pick-up time runs out.
    env.stall(5500)
    const c = process()
    const stolen = await env.until(c.holdfast.mutex('x').acquire())
    await env.advance(100)
    expect(stolen.held).toBe(true)
    expect(await stateOf(second)).toBe('waiting')
    await env.until(stolen.release())
    expect((await env.until(second)).held).toBe(true)
  })

  it('does not end with a push that the store does not confirm, however often it is told', async () => {
    const { env, process, server } = world()
    const a = process()
    const b = process()
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    const info = await server.inspect('x', 1000)
    const id = 'kind' in info ? '' : (info.waiters[0]?.id ?? '')
    expect(id).not.toBe('')
    const asked = b.store.count('renew')
    for (let time = 0; time < 3; time++) {
      b.store.forge({
        kind: 'granted',
        name: 'x',
        id,
        token: first.token + 1n,
        count: 1,
        contended: false,
      })
      await env.advance(10)
    }
    expect(b.store.count('renew') - asked).toBe(3)
    expect(await stateOf(second)).toBe('waiting')
    expect(first.held).toBe(true)
    await env.until(first.release())
    expect((await env.until(second)).token).toBeGreaterThan(first.token)
  })

  it('asks again when the answer under way may be older than the push', async () => {
    const { env, process } = world()
    const a = process()
    const b = process()
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    // A sign of life whose answer, "queued", takes long; the grant and its message come meanwhile.
    b.store.back = 400
    b.store.gap()
    await env.advance(10)
    b.store.back = 0
    await env.until(first.release())
    const before = env.mono()
    await env.until(second)
    expect(env.mono() - before).toBeLessThan(410)
  })

  it('ends with a lease of the full ttl', async () => {
    const { env, process } = world()
    const a = process()
    const b = process()
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(1000)
    await env.until(first.release())
    const lease = await env.until(second)
    expect(lease.remaining()).toBeGreaterThan(14_000)
  })

  it('is over for a holder that the store has in its queue again', async () => {
    const { env, process, server } = world()
    const a = process()
    const b = process()
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    await env.until(first.release())
    const lease = await env.until(second)
    // A failover to a replica that had not heard of the release: the former holder is back, the new one waits.
    b.store.renew = (requests) => requests.map(() => ({ kind: 'queued' }))
    await env.advance(5100)
    expect(lease.held).toBe(false)
    expect(lease.signal.aborted).toBe(true)
    await env.advance(100)
    const info = await server.inspect('x', 1000)
    expect(info).toMatchObject({ holders: [], waiters: [] })
  })

  it('behind a holder that crashed ends with its lease, not with the next heartbeat', async () => {
    const { env, process, server } = world()
    const [dead, b, c] = [process(), process({ patience: 7_300 }), process({ patience: 7_300 })]
    await env.until(dead.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    const third = c.holdfast.mutex('x').acquire()
    await env.advance(6900)
    dead.store.lose('any', 'request', Infinity)
    dead.store.events = Infinity
    const { holders } = (await server.inspect('x', 1000)) as NameInfo
    const before = env.mono()
    const lease = await env.until(second)
    const took = env.mono() - before - (holders[0]?.expiresIn ?? 0)
    expect(took).toBeGreaterThanOrEqual(0)
    expect(took).toBeLessThan(20)
    // While somebody renews, nobody asks more often for it: 15 s of signs of life and one look at the end of the lease.
    expect(b.store.count('renew')).toBeLessThan(15)
    await env.until(lease.release())
    await env.until(third)
  })

  it('ends soon when a failover brings back a claim that was given up meanwhile', async () => {
    const { env, process, server } = world()
    const [a, b] = [process(), process()]
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    const { waiters } = (await server.inspect('x', 1000)) as NameInfo
    const session = waiters[0]?.id.split('.')[0] ?? ''
    const old = { weight: 1, capacity: 1, ttl: 15_000, patience: 5_000, tokens: 1, owner: 'b' }
    // The new primary has not heard that b gave this one up.
    await env.until(first.release())
    await env.until((await env.until(second)).release())
    await server.claim({ ...old, name: 'x', id: `${session}.998`, whenBusy: 'try' }, 1000)
    const third = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    const before = env.mono()
    b.store.gap()
    const lease = await env.until(third)
    expect(env.mono() - before).toBeLessThan(50)
    // Nor that it left the line.
    await server.claim({ ...old, name: 'x', id: `${session}.999`, whenBusy: 'queue' }, 1000)
    const fourth = a.holdfast.mutex('x').acquire()
    await env.advance(100)
    const then = env.mono()
    await env.until(lease.release())
    await env.until(fourth)
    expect(env.mono() - then).toBeLessThan(50)
  })

  it.each([
    ['at once', 0],
    ['after a while', 3],
  ])('ends soon for every name that a failover brought something back for, answered %s', async (_, away) => {
    const { env, process, server } = world()
    const { holdfast, store } = process()
    const ids = 'abc'.split('')
    const own = await env.until(holdfast.readWriteLock('mine').write.acquire())
    holdfast
      .readWriteLock('mine')
      .read.acquire()
      .catch(() => {})
    const { holders } = (await server.inspect('mine', 1000)) as NameInfo
    const session = holders[0]?.id.split('.')[0] ?? ''
    const old = { weight: 1, capacity: 1, ttl: 15_000, patience: 5_000, tokens: 1, owner: 'b' }
    for (const name of ids)
      await server.claim({ ...old, name, id: `${session}.99${name}`, whenBusy: 'try' }, 1000)
    store.there = store.back = away
    const waits = ids.map((name) => holdfast.mutex(name).acquire())
    await env.advance(100)
    if (away === 0) store.inspect = (name, timeout) => server.inspect(name, timeout)
    const before = env.mono()
    store.gap()
    await env.until(Promise.all(waits))
    expect(env.mono() - before).toBeLessThan(100)
    // What is known here is no stranger, though the store names it as well.
    expect(own.held).toBe(true)
    expect(await server.inspect('mine', 1000)).toMatchObject({ holders: [{ owner: 'test' }] })
  })

  it('is not called lost when the message of its grant comes while it is given up', async () => {
    const { env, process } = world()
    const [a, b] = [process(), process()]
    const { release } = b.store
    // Another connection than the one that takes back what a failover brought: whatever is sent first may arrive last.
    b.store.release = async (...args) => {
      await env.sleep(30)
      return release(...args)
    }
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').run(async () => {
      await env.sleep(20)
      return 'done'
    })
    await env.advance(1000)
    b.store.events = 40
    b.store.there = 5
    await env.advance(5000 / 3 - 1003)
    // Its sign of life is on its way, and is answered before the message comes.
    await env.until(first.release())
    expect(await env.until(second)).toBe('done')
    expect(b.store.count('withdraw')).toBe(0)
  })

  it('is not held up for long by a waiter that died', async () => {
    const { env, process } = world()
    const [a, dead, b] = [process(), process(), process()]
    const first = await env.until(a.holdfast.mutex('x').acquire())
    dead.holdfast
      .mutex('x')
      .acquire({ wait: Infinity })
      .catch(() => {})
    await env.advance(100)
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    dead.store.lose('any', 'request', Infinity)
    dead.store.events = Infinity
    await env.until(first.release())
    const before = env.mono()
    expect((await env.until(second)).held).toBe(true)
    expect(env.mono() - before).toBeLessThan(5000 + 5000 / 3 + 100)
  })

  it('goes on in a new place when the store forgot the waiter', async () => {
    const { env, process } = world()
    const a = process()
    const b = process({ wait: Infinity })
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(100)
    b.store.lose('renew', 'request', Infinity)
    await env.advance(6000)
    b.store.heal()
    await env.advance(6000)
    await env.until(first.release())
    expect((await env.until(second)).held).toBe(true)
  })

  it('asks again with pauses also where the store has a queue and does not let us in', async () => {
    const { env, process } = world()
    const a = process()
    const b = process({ wait: 5000 })
    await env.until(a.holdfast.mutex('x').acquire())
    const { claim } = b.store
    b.store.claim = (request, timeout) => claim({ ...request, ...named(request), whenBusy: 'try' }, timeout)
    await expect(env.until(b.holdfast.mutex('x').acquire())).rejects.toBeInstanceOf(LockTimeoutError)
    expect(b.store.count('claim')).toBeLessThan(50)
  })

  it('asks again with growing pauses where the store has no queue', async () => {
    const { env, process } = world({ queue: false, wakeups: 'poll' })
    const a = process()
    const b = process({ wait: Infinity })
    const first = await env.until(a.holdfast.mutex('x').acquire())
    const second = b.holdfast.mutex('x').acquire()
    await env.advance(10_000)
    expect(b.store.count('claim')).toBeGreaterThan(15)
    expect(b.store.count('claim')).toBeLessThan(60)
    await env.until(first.release())
    expect((await env.until(second)).held).toBe(true)
  })
})

describe('giving up', () => {
  it('after the wait is a typed timeout, and leaves nothing behind', async () => {
    const w = world()
    const a = w.process()
    const b = w.process()
    const first = await w.env.until(a.holdfast.mutex('x').acquire())
    const error: unknown = await w.env
      .until(b.holdfast.mutex('x').acquire({ wait: 700 }))
      .catch((e: unknown) => e)
    expect(error).toBeInstanceOf(LockTimeoutError)
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', lock: 'x', store: 'far', waited: 700 })
    await w.env.settle()
    await w.env.until(first.release())
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('is a timeout also when somebody else’s try was not answered meanwhile', async () => {
    const { env, process } = world()
    const writer = process()
    const reader = process()
    const lease = await env.until(writer.holdfast.readWriteLock('x').write.acquire())
    const { read } = reader.holdfast.readWriteLock('x')
    const waiting = read.acquire({ wait: 1000 }).catch((error: unknown) => error)
    await env.advance(100)
    reader.store.claim = () => ({ kind: 'unknown', cause: new Error('no'), retryable: false })
    const tried = read.tryAcquire().catch((error: unknown) => error)
    expect(await env.until(waiting)).toMatchObject({ code: 'LOCK_TIMEOUT' })
    expect(await env.until(tried)).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await env.until(lease.release())
  })

  it('ends when the store says of those who stand in line that asking again cannot help', async () => {
    const { env, process } = world()
    const a = process()
    const b = process()
    const lease = await env.until(a.holdfast.mutex('x').acquire())
    const waiting = b.holdfast.mutex('x').acquire({ wait: Infinity })
    const ended = waiting.catch((error: unknown) => error)
    await env.advance(100)
    const cause = new Error('the session is over')
    b.store.renew = (requests) => requests.map(() => ({ kind: 'unknown', cause, retryable: false }))
    await env.advance(10_000)
    expect(await env.until(ended)).toMatchObject({ code: 'STORE_UNAVAILABLE', cause, retryable: false })
    await env.until(lease.release())
  })

  it('does not wait at all with wait: 0', async () => {
    const { env, process } = world()
    const a = process()
    const b = process()
    await env.until(a.holdfast.mutex('x').acquire())
    const before = env.mono()
    await expect(env.until(b.holdfast.mutex('x').acquire({ wait: 0 }))).rejects.toBeInstanceOf(
      LockTimeoutError,
    )
    expect(env.mono()).toBe(before)
  })

  it('says with wait: 0 how long the store took to answer', async () => {
    const { env, process } = world()
    const b = process()
    await env.until(process().holdfast.mutex('x').acquire())
    b.store.there = 700
    const asked = env.until(b.holdfast.mutex('x').acquire({ wait: 0 }))
    await expect(asked).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', waited: 700 })
  })

  const reason = new Error('enough')

  it('before anything was sent asks the store nothing', async () => {
    const { env, process } = world()
    const { holdfast, store } = process()
    const error: unknown = await env
      .until(holdfast.mutex('x').acquire({ signal: AbortSignal.abort(reason) }))
      .catch((e: unknown) => e)
    expect(error).toBeInstanceOf(LockAbortedError)
    expect((error as LockAbortedError).cause).toBe(reason)
    expect(store.count()).toBe(0)
  })

  it.each([
    ['while the request is on its way', 50, 0],
    ['while the answer is on its way', 0, 50],
  ])('%s answers at once and takes the claim away afterwards', async (_, there, back) => {
    const w = world()
    const { holdfast, store } = w.process()
    store.there = there
    store.back = back
    const controller = new AbortController()
    const waiting = holdfast.mutex('x').acquire({ signal: controller.signal })
    await w.env.advance(10)
    const before = w.env.mono()
    controller.abort(reason)
    await expect(w.env.until(waiting)).rejects.toBeInstanceOf(LockAbortedError)
    expect(w.env.mono()).toBe(before)
    await w.env.runUntilIdle()
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('while queued leaves the queue', async () => {
    const w = world()
    const a = w.process()
    const b = w.process()
    const c = w.process()
    const first = await w.env.until(a.holdfast.mutex('x').acquire())
    const controller = new AbortController()
    const waiting = b.holdfast.mutex('x').acquire({ signal: controller.signal })
    await w.env.advance(10)
    const third = c.holdfast.mutex('x').acquire()
    await w.env.advance(10)
    controller.abort(reason)
    await expect(w.env.until(waiting)).rejects.toBeInstanceOf(LockAbortedError)
    await w.env.until(first.release())
    const before = w.env.mono()
    await w.env.until(third)
    expect(w.env.mono() - before).toBeLessThan(5)
  })

  it('just when the store granted it passes the lock on at once', async () => {
    const w = world()
    const a = w.process()
    const b = w.process()
    const c = w.process()
    const first = await w.env.until(a.holdfast.mutex('x').acquire())
    const controller = new AbortController()
    const waiting = b.holdfast.mutex('x').acquire({ signal: controller.signal })
    await w.env.advance(10)
    const third = c.holdfast.mutex('x').acquire()
    await w.env.advance(10)
    b.store.events = 20
    await w.env.until(first.release())
    await w.env.advance(5)
    controller.abort(reason)
    await expect(w.env.until(waiting)).rejects.toBeInstanceOf(LockAbortedError)
    const before = w.env.mono()
    const lease = await w.env.until(third)
    expect(w.env.mono() - before).toBeLessThan(5)
    await w.env.until(lease.release())
    await w.env.advance(100)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('when the claim is in doubt refuses its late copies from then on', async () => {
    const w = world()
    const { holdfast, store } = w.process({ requestTimeout: 200 })
    store.lose('claim', 'reply', Infinity)
    await expect(w.env.until(holdfast.mutex('x').acquire({ wait: 500 }))).rejects.toBeInstanceOf(
      StoreUnavailableError,
    )
    await w.env.runUntilIdle()
    expect(store.count('withdraw')).toBeGreaterThan(0)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('when it has lost its place refuses what is still on its way for that', async () => {
    const w = world()
    const [a, b] = [w.process({ ttl: 60_000 }), w.process({ requestTimeout: 200, patience: 1000 })]
    const first = await w.env.until(a.holdfast.mutex('x').acquire())
    b.store.lose('claim', 'late')
    const waiting = b.holdfast.mutex('x').acquire()
    await w.env.advance(1000)
    const [before] = ((await w.server.inspect('x', 100)) as NameInfo).waiters
    expect(before).toBeDefined()
    // Silent for longer than its patience: it is asked for anew, by another name.
    b.env.pause(3000)
    await w.env.advance(6000)
    const [after] = ((await w.server.inspect('x', 100)) as NameInfo).waiters
    expect(after?.id).not.toBe(before?.id)
    await w.env.until(first.release())
    await w.env.until((await w.env.until(waiting)).release())
    await w.env.advance(b.store.late)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('when it was lost refuses what is still on its way for it', async () => {
    const w = world()
    const { holdfast, store } = w.process({ requestTimeout: 200, ttl: 3000 })
    store.lose('claim', 'late')
    const lease = await w.env.until(holdfast.mutex('x').acquire())
    const [{ id } = { id: '' }] = ((await w.server.inspect('x', 100)) as NameInfo).holders
    await w.server.release({ name: 'x', id, uncontended: false }, undefined, 100)
    await w.env.advance(1500)
    expect(lease.held).toBe(false)
    await w.env.advance(store.late - 1000)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('goes on cleaning up until the store confirms', async () => {
    const w = world()
    const { holdfast, store } = w.process({ requestTimeout: 200, ttl: 10_000 })
    store.lose('claim', 'reply')
    const waiting = holdfast.mutex('x').tryAcquire()
    store.lose('withdraw', 'request', 3)
    await expect(w.env.until(waiting)).rejects.toBeInstanceOf(StoreUnavailableError)
    expect(await isClean(w, 'x')).toBe(false)
    await w.env.runUntilIdle(5000)
    expect(store.count('withdraw')).toBe(4)
    expect(await isClean(w, 'x')).toBe(true)
  })

  it('leaves no listener on a signal that serves ten thousand acquires', async () => {
    const { env, process } = world()
    const { holdfast } = process()
    const { signal } = new AbortController()
    let added = 0
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      added++
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      added--
      remove(...args)
    }
    const mutex = holdfast.mutex('x')
    const section = async (): Promise<void> => {
      const lease: Lease = await mutex.acquire({ signal })
      expect(added).toBeLessThanOrEqual(1)
      await lease.release()
    }
    await env.until(Promise.all(Array.from({ length: 10_000 }, section)))
    expect(added).toBe(0)
  })
})
