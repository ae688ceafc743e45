import { HoldfastError } from '../../core/errors.ts'
import type { Holdfast } from '../../locks/holdfast.ts'
import type { AcquireOptions } from '../../locks/options.ts'
import type { Timer } from '../../runtime/env.ts'
import type { Lease, ReleaseOutcome } from '../../runtime/lease.ts'
import type { Random } from '../../testkit/random.ts'
import type { VirtualEnv } from '../../testkit/virtual-env.ts'
import { nanoseconds } from '../../testkit/history.ts'
import type { Chapter, Diary } from './diary.ts'
import { takeOf } from './names.ts'
import type { NameKind, Take } from './names.ts'
import type { ProcessEnv } from './process-env.ts'
import type { Reading, Resource } from './resource.ts'

/** What a task needs to work. */
export interface Workplace {
  readonly holdfast: Holdfast
  readonly env: ProcessEnv
  readonly world: VirtualEnv
  readonly diary: Diary
  readonly random: Random
  readonly resource: Resource
  readonly names: readonly NameKind[]
  /** One signal for all acquires of the process: it must not collect listeners. */
  readonly shutdown: AbortSignal
  readonly ttl: number
  /** Nothing is done to the world, so that waits can be measured. */
  readonly calm: boolean
  readonly rounds: number
  readonly over: () => boolean
}

const FOR_LONG = 600_000
/** After this long without an answer a waiter stands in line, if nothing is in its way. */
const IN_LINE_MS = 10
const LOOKS_PER_TTL = 16

/** One task of one process: takes locks, changes what they guard, gives them back, in all the ways that users do. */
export async function task(place: Workplace): Promise<void> {
  const { random, env, names } = place
  for (let round = 0; round < place.rounds && !place.over(); round++) {
    const kind = names[random.below(names.length)] ?? 'mutex'
    const take = takeOf(place.holdfast, kind, random.next())
    const chapter = place.diary.begin(kind, take)
    try {
      if (kind === 'reentrant') await nested(place, take, chapter)
      else await once(place, take, chapter)
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
      chapter.failed(error.code)
    }
    if (random.next() < 0.5) await env.sleep(random.below(50))
  }
}

async function once(place: Workplace, take: Take, chapter: Chapter): Promise<void> {
  const lease = await acquire(place, take, chapter)
  if (lease === null) return chapter.failed('busy')
  await section(place, take, chapter, lease)
  if (take.downgrade !== undefined && lease.held && place.random.next() < 0.5) {
    await readOn(place, take.downgrade, chapter, lease)
  }
  chapter.releasing()
  const released = lease.release()
  if (lease.held) chapter.lied('after its release')
  chapter.released(await released)
}

/** Through `run`, with the same lock taken again inside. */
async function nested(place: Workplace, { lock, alone }: Take, chapter: Chapter): Promise<void> {
  const { random, diary } = place
  let outcome: ReleaseOutcome = 'unknown'
  let entered = false
  const again = random.next() < 0.5
  const work = async (lease: Lease): Promise<void> => {
    entered = true
    await section(place, { lock, alone, weight: 1, capacity: 1 }, chapter, lease)
    if (again && lease.held) {
      const call = nanoseconds(diary.at())
      const inner = await lock.acquire()
      // If the outer lease ended just then, this is another one, and not a re-entry.
      if (lease.held) chapter.reentered(inner, call)
      await inner.release()
    }
    chapter.releasing()
  }
  try {
    await lock.run(work, options(place))
  } catch (error) {
    if (!entered || !(error instanceof HoldfastError)) throw error
    outcome = 'expired'
  }
  chapter.released(outcome)
}

function options({ random, shutdown, calm }: Workplace): AcquireOptions {
  const impatient = !calm && random.next() < 0.2
  return { signal: shutdown, wait: impatient ? 1 + random.below(2000) : FOR_LONG }
}

async function acquire(place: Workplace, take: Take, chapter: Chapter): Promise<Lease | null> {
  const { random, env, calm } = place
  const { lock, permits } = take
  const how = { ...options(place), ...(permits === undefined ? {} : { permits }) }
  if (calm) {
    const asked = lock.acquire(how)
    const waiting = env.setTimer(() => chapter.queued(), IN_LINE_MS, true)
    const lease = await asked
    waiting.cancel()
    return lease
  }
  if (random.next() < 0.15) {
    const { wait: _, ...atOnce } = how
    return lock.tryAcquire(atOnce)
  }
  if (random.next() >= 0.15) return lock.acquire(how)
  const controller = new AbortController()
  const timer = env.setTimer(() => controller.abort(), random.below(1500), true)
  try {
    return await lock.acquire({ ...how, signal: controller.signal })
  } finally {
    timer.cancel()
  }
}

/** What is done while the lock is held. Stops when the lease says so. */
async function section(place: Workplace, { alone }: Take, chapter: Chapter, lease: Lease): Promise<void> {
  const { random, env, ttl, calm } = place
  chapter.acquired(lease)
  lease.signal.addEventListener('abort', () => chapter.aborted(), { once: true })
  const watched = watch(place, chapter, lease)
  const reading = alone && lease.held ? await read(place, lease) : undefined
  const long = !calm && random.next() < 0.2
  const until = place.diary.at() + random.below(long ? ttl * 1.5 : 20)
  while (place.diary.at() < until && lease.held) {
    await env.sleep(Math.min(ttl / 10, Math.max(1, until - place.diary.at())))
  }
  if (reading !== undefined && lease.held) {
    // Between the look and the deed there is always time for something to happen.
    if (random.next() < 0.3) await env.sleep(random.next())
    chapter.wrote(await write(place, lease, reading))
  }
  watched.cancel()
}

/** A writer stays on to read. Some do not wait until they may. */
async function readOn(
  place: Workplace,
  downgrade: NonNullable<Take['downgrade']>,
  chapter: Chapter,
  lease: Lease,
): Promise<void> {
  const { random, env, ttl, calm } = place
  const long = !calm && random.next() < 0.2
  const until = place.diary.at() + random.below(long ? ttl * 1.5 : 20)
  // From before it asks: the lease is renewed meanwhile.
  const watched = watch(place, chapter, lease)
  chapter.downgrading()
  const going = downgrade(lease).then(
    () => chapter.downgraded('downgraded'),
    (error: unknown) => {
      if (!(error instanceof HoldfastError)) throw error
      chapter.downgraded('unknown')
    },
  )
  if (!calm && random.next() < 0.2) {
    watched.cancel()
    return void going.catch(() => undefined)
  }
  await going
  while (place.diary.at() < until && lease.held) {
    await env.sleep(Math.min(ttl / 10, Math.max(1, until - place.diary.at())))
  }
  watched.cancel()
}

/** Writes down from time to time how long the lease is believed in. */
function watch({ env, ttl }: Workplace, chapter: Chapter, lease: Lease): Timer {
  let timer: Timer | undefined
  const look = (): void => {
    // In this order: a lease of which nothing is left now is not held a moment later.
    const left = lease.remaining()
    if (!lease.held) return
    if (left <= 0) chapter.lied('with nothing left of it')
    chapter.check(lease)
    timer = env.setTimer(look, ttl / LOOKS_PER_TTL, true)
  }
  look()
  return { cancel: () => timer?.cancel() }
}

function read({ resource, ...place }: Workplace, { name, token }: Lease): Promise<Reading> {
  return ask(place, () => resource.read(name, token))
}

function write(
  { resource, ...place }: Workplace,
  { name, token }: Lease,
  reading: Reading,
): Promise<boolean> {
  return ask(place, () => resource.write(name, token, reading))
}

/** The resource is reached by another way than the store, which is slow now and then. */
function ask<T>({ world, env, random, ttl, calm }: Omit<Workplace, 'resource'>, run: () => T): Promise<T> {
  const slow = !calm && random.next() < 0.05
  const there = 0.1 + random.next() + (slow ? random.below(1.5 * ttl) : 0)
  const back = 0.1 + random.next()
  return new Promise((resolve) => {
    const arrive = (): void => {
      const answer = run()
      world.setTimer(() => env.reach(() => resolve(answer)), back, true)
    }
    world.setTimer(arrive, there, true)
  })
}
