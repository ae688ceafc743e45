import { setTimeout as sleep } from 'node:timers/promises'

import { ALL } from '../../core/contract.ts'
import { HoldfastError } from '../../core/errors.ts'
import type { Lease } from '../../runtime/lease.ts'
import type { Lock, ReadWriteLock } from '../../locks/lock.ts'
import type { ClaimShape, Recorder, Story } from '../../testkit/history.ts'
import type { Random } from '../../testkit/random.ts'
import type { ResourceClient } from '../resource/client.ts'
import { asserted, wrongIn } from './answers.ts'
import type { LabName } from './evidence.ts'
import { LATE, SHORT_WAIT } from './evidence.ts'
import type { Doubtful, LabClient } from './library.ts'
import type { FromWorker, Manner, Meeting, Place, WorkOrder } from './worker-protocol.ts'

const WORK_MS = 40
const CHECK_EVERY_MS = 15
const WAIT_MS = 30_000
/** The longest that somebody waits who does not want to wait for long. */
const IMPATIENT_MS = 60
/** How long a wait may go on when its time is over, or its caller does not want it any more; and how long a release may take. */
const SETTLES_MS = 1000
/** A try is one question. */
const TRIED_MS = 500
/** A write that is sent with less than this left could arrive too late on a machine that is busy. */
const MARGIN_MS = 120
/** Timers may be early by a fraction. */
const EARLY_MS = 2

/** What a client was told to do in one of its next sections. */
export interface Wishes {
  /** The next one is of this kind of lock, and lasts so long. */
  long: { readonly kind: LabName['kind']; readonly ms: number } | undefined
  /** The next one is of this lock, for as long as the others who have it; or tried for, when they have all of it. */
  meet: Meeting | undefined
  stand(where: Place, name: string): Promise<void>
  readonly lingers: boolean
}

export interface SectionTools {
  readonly order: WorkOrder
  readonly library: LabClient
  readonly resource: ResourceClient
  readonly random: Random
  readonly recorder: Recorder
  readonly wishes: Wishes
  /** Ends every wait. */
  readonly stop: AbortSignal
  tell(message: FromWorker): void
  /** The lease that is in hand, for the picture. */
  holding(lease: Lease | undefined): void
}

interface Asked {
  readonly lock: Lock
  readonly name: string
  readonly manner: Manner
  readonly shape: ClaimShape
  readonly permits?: number
  /** How long somebody waits who does not want to wait for long. Absent: as chance has it. */
  readonly short?: number
}

/** Which lock is asked for, and how. */
interface Deal {
  readonly name: LabName
  readonly manner: Manner
}

/** One section after the other: every kind of lock that the store has, asked for in every way there is. */
export class Sections {
  private readonly tools: SectionTools
  /** What this section was told to be. */
  private long: Wishes['long']
  /** What is to be done next, of everything that can be: all of it in turns, for few sections must do where the machine is slow. */
  private deck: readonly Deal[] = []
  /** Whether all of it was done once: before that nothing is left to chance. */
  private wentThrough = false
  /** Whether the next `run` finds its lease given back already. The first has to do that itself. */
  private byHand = false

  constructor(tools: SectionTools) {
    this.tools = tools
  }

  async next(): Promise<void> {
    const { wishes } = this.tools
    const { meet } = wishes
    if (meet !== undefined) return this.meet(meet)
    this.long = wishes.long
    wishes.long = undefined
    await this.section()
    // It was not given: the next one has to be.
    wishes.long ??= this.long
  }

  /** What several may hold, several do, and nobody beside them. Whoever is to be one of them asks until it is given it. */
  private async meet(meeting: Meeting): Promise<void> {
    const { library, wishes } = this.tools
    const { at, as, manner = 'wait', permits = 1 } = meeting
    const { name, kind, capacity = 1 } = at
    const short = IMPATIENT_MS
    const over = (): void => {
      if (wishes.meet === meeting) wishes.meet = undefined
    }
    const stand = (): Promise<void> => wishes.stand('among others', name)
    if (as === 'one too many') over()
    if (kind === 'semaphore') {
      const shape = { weight: permits, capacity }
      const lock = library.semaphore(name, capacity)
      return this.play({ lock, name, manner, shape, permits, short }, () => {
        over()
        return stand()
      })
    }
    const both = library.readWriteLock(name)
    const writes = as !== 'one of them'
    const lock = writes ? both.write : both.read
    const shape = { weight: writes ? ALL : 1, capacity: ALL }
    await this.play({ lock, name, manner, shape, short }, async (lease, story) => {
      over()
      if (as === 'a writer first') await this.downgrade(both, lease, story)
      await stand()
    })
  }

  private async section(): Promise<void> {
    const { random, order, wishes } = this.tools
    const steady = wishes.lingers || (this.wentThrough && random.next() < 0.6)
    const wanted = this.long?.kind ?? (steady ? 'mutex' : undefined)
    if (wanted === undefined) {
      await this.dealt(this.deal())
      if (this.wentThrough || this.deck.length > 0) return
      this.wentThrough = true
      this.tools.tell({ kind: 'asked for everything' })
      return
    }
    const [one, ...more] = order.names.filter(({ kind }) => kind === wanted)
    // Who was told to do something in its section has to be given one.
    const told = wishes.lingers || this.long !== undefined
    const manner = told || (steady && random.next() < 0.7) ? 'wait' : random.pick(order.manners)
    if (one !== undefined) await this.dealt({ name: random.pick([one, ...more]), manner })
  }

  private dealt({ name, manner }: Deal): Promise<void> {
    if (name.kind === 'mutex') return this.mutex(name, manner)
    // Only a mutex may be taken again inside.
    const plain = manner === 'nested' ? 'wait' : manner
    return name.kind === 'semaphore' ? this.permits(name, plain) : this.readWrite(name, plain)
  }

  private deal(): Deal {
    const { random, order } = this.tools
    if (this.deck.length === 0)
      this.deck = order.names
        .flatMap((name) => order.manners.map((manner) => ({ name, manner, at: random.next() })))
        .sort((a, b) => a.at - b.at)
    const [next, ...rest] = this.deck
    this.deck = rest
    return next as Deal
  }

  private async mutex({ name }: LabName, manner: Manner): Promise<void> {
    const { library } = this.tools
    const lock = library.mutex(name, { reentrant: manner === 'nested' })
    const asked: Asked = { lock, name, manner, shape: {} }
    if (manner !== 'nested') return this.play(asked, (lease) => this.update(name, lease))
    await this.nested(asked)
  }

  private async permits({ name, capacity = 1 }: LabName, manner: Manner): Promise<void> {
    const { library, random } = this.tools
    const permits = random.next() < 0.3 ? Math.min(2, capacity) : 1
    const lock = library.semaphore(name, capacity)
    const shape = { weight: permits, capacity }
    await this.play({ lock, name, shape, permits, manner }, () => this.work())
  }

  private async readWrite({ name }: LabName, manner: Manner): Promise<void> {
    const { library, random } = this.tools
    const both = library.readWriteLock(name)
    if (random.next() < 0.6) {
      const shape = { weight: 1, capacity: ALL }
      await this.play({ lock: both.read, name, manner, shape }, () => this.work())
      return
    }
    const shape = { weight: ALL, capacity: ALL }
    await this.play({ lock: both.write, name, manner, shape }, async (lease, story) => {
      await this.update(name, lease)
      if (library.store.downgrade === undefined || !lease.held || random.next() >= 0.3) return
      await this.downgrade(both, lease, story)
      await sleep(random.below(WORK_MS))
    })
  }

  private async downgrade(both: ReadWriteLock, lease: Lease, story: Story): Promise<void> {
    story.downgrading()
    await this.inTime('downgrade', SETTLES_MS, both.downgrade(lease))
    story.downgraded('downgraded')
  }

  private async work(): Promise<void> {
    const { random } = this.tools
    const { long } = this
    this.long = undefined
    await sleep(long?.ms ?? random.below(WORK_MS))
    if (long !== undefined) this.tools.tell({ kind: 'long' })
  }

  /** Asks, works, gives back, and writes everything down. */
  private async play(asked: Asked, inside: (lease: Lease, story: Story) => Promise<void>): Promise<void> {
    const story = this.tools.recorder.acquire(asked.name, asked.shape)
    const lease = await this.ask(asked, story)
    if (lease === null) return
    const began = process.hrtime.bigint()
    const checks = this.begin(story, lease, asked.name)
    try {
      await inside(lease, story)
    } catch (error) {
      this.failed('the section', began, error)
    } finally {
      await this.giveBack(story, lease, checks)
    }
  }

  private async ask(asked: Asked, story: Story): Promise<Lease | null> {
    const { stop, random } = this.tools
    const { lock, name, manner, permits, shape, short = 1 + random.below(IMPATIENT_MS) } = asked
    const began = process.hrtime.bigint()
    const more = permits === undefined ? {} : { permits }
    const impatient = manner === 'give up' ? AbortSignal.timeout(short) : undefined
    const wait = manner === 'time out' ? short : WAIT_MS
    const signal = impatient === undefined ? stop : AbortSignal.any([stop, impatient])
    const over = this.settles(impatient, manner === 'time out' ? short : undefined)
    try {
      if (manner === 'try') {
        const lease = await this.inTime('tryAcquire', TRIED_MS, lock.tryAcquire({ ...more, signal: stop }))
        if (lease !== null) return lease
        story.failed()
        const { weight = 1, capacity = 1 } = shape
        const refusal = { name, weight, capacity, from: began, at: process.hrtime.bigint() }
        this.tools.tell({ kind: 'refused', refusal })
        return null
      }
      // Who waits is given a lease, or an error that says why not.
      const lease = (await lock.acquire({ ...more, wait, signal })) as Lease | null
      if (lease === null) throw new Error('it ended without a lease and without an error')
      return lease
    } catch (error) {
      over()
      story.failed()
      const code = error instanceof HoldfastError ? error.code : undefined
      const aborted = code === 'LOCK_ABORTED' && (stop.aborted || impatient?.aborted === true)
      // A wait that is over before the store has answered ends with that.
      const waited = Number(process.hrtime.bigint() - began) / 1e6
      const late = code === 'LOCK_TIMEOUT' || code === 'STORE_UNAVAILABLE'
      const timedOut = manner === 'time out' && late && waited >= short - EARLY_MS
      if (timedOut && code === 'STORE_UNAVAILABLE') this.failed(SHORT_WAIT, began, error)
      else if (!aborted && !timedOut) this.failed(manner === 'try' ? 'tryAcquire' : 'acquire', began, error)
      // A store that is down answers at once; it is not asked a thousand times a second.
      await sleep(aborted || timedOut ? 0 : 50)
      return null
    } finally {
      over()
    }
  }

  /** A wait that nobody wants any more, or whose time is over, ends. Call what is returned when it has. */
  private settles(signal: AbortSignal | undefined, wait: number | undefined): () => void {
    const began = process.hrtime.bigint()
    const late = (): void =>
      this.failed('acquire', began, new Error(`it goes on ${SETTLES_MS} ms after it was to end`))
    let timer = wait === undefined ? undefined : setTimeout(late, wait + SETTLES_MS)
    const aborted = (): void => {
      clearTimeout(timer)
      timer = setTimeout(late, SETTLES_MS)
    }
    signal?.addEventListener('abort', aborted, { once: true })
    return () => {
      signal?.removeEventListener('abort', aborted)
      clearTimeout(timer)
    }
  }

  /** Inside its own `run` the lock is taken once more: the same token, and what is inside ends first. */
  private async nested({ lock, name }: Asked): Promise<void> {
    const { stop, recorder } = this.tools
    const story = recorder.acquire(name)
    const began = process.hrtime.bigint()
    let inHand = false
    let ended = (_error?: unknown): void => undefined
    const { byHand } = this
    try {
      const answer = await lock.run(
        async (lease) => {
          if (inHand) throw new Error('its function was called twice')
          inHand = true
          const checks = this.begin(story, lease, name)
          try {
            await this.inner(lock, lease)
            await this.update(name, lease)
          } finally {
            if (byHand) await this.giveBack(story, lease, checks)
            else ended = this.leave(story, lease, checks)
          }
          return story
        },
        { wait: WAIT_MS, signal: stop },
      )
      this.byHand = !byHand
      ended()
      if (!inHand) throw new Error('it ended and its function was never called')
      if (answer !== story) throw new Error('it did not return what its function did')
    } catch (error) {
      if (!inHand) story.failed()
      ended(error)
      if (!stop.aborted) this.failed('run', began, error)
      await sleep(inHand ? 0 : 50)
    }
  }

  private async inner(lock: Lock, outer: Lease): Promise<void> {
    const began = process.hrtime.bigint()
    const inner = await this.inTime('a nested acquire', SETTLES_MS, lock.acquire({ wait: WAIT_MS }))
    // One that was lost meanwhile has nothing to share.
    if (inner.token !== outer.token && outer.held)
      this.failed('a nested acquire', began, new Error(`its token is not that of the lease around it`))
    const left = outer.remaining()
    const asked = performance.now()
    await this.inTime('a nested release', SETTLES_MS, inner.release())
    // One that was lost has told of it.
    if (!outer.held && !outer.signal.aborted && performance.now() - asked < left)
      this.failed('a nested release', began, new Error('it ended the lease around it'))
  }

  private begin(story: Story, lease: Lease, name: string): NodeJS.Timeout {
    const began = process.hrtime.bigint()
    const { token } = lease
    story.acquired(lease)
    this.tools.holding(lease)
    if (lease.signal.aborted) story.lost()
    lease.signal.addEventListener('abort', () => story.lost(), { once: true })
    if (!lease.held) this.late('a lease', began, 'it was not held when it was given')
    let told = false
    return setInterval(() => {
      // In this order: a lease of which nothing is left now is not held a moment later.
      const left = lease.remaining()
      const { held } = lease
      if (held) story.check(lease)
      if (told) return
      const wrong = wrongIn(lease, { name, token, held, left, ttl: this.tools.order.ttl })
      told = wrong !== undefined
      if (wrong !== undefined) this.failed(wrong.call, began, wrong.why)
    }, CHECK_EVERY_MS)
  }

  /** A call that is answered late is told of. While something stands in the way it may be. */
  private async inTime<T>(call: string, most: number, answer: Promise<T>): Promise<T> {
    const from = process.hrtime.bigint()
    const timer = setTimeout(() => this.late(call, from, `it was not answered in ${most} ms`), most)
    try {
      return await answer
    } finally {
      clearTimeout(timer)
    }
  }

  private async giveBack(story: Story, lease: Lease, checks: NodeJS.Timeout): Promise<void> {
    const began = process.hrtime.bigint()
    const lost = lease.signal.aborted && 'assertHeld' in lease
    story.releasing()
    try {
      const answer = this.inTime('release', SETTLES_MS, lease.release())
      // From the call on it is somebody else's, whatever the store will say.
      if (lease.held) story.check(lease)
      if ('assertHeld' in lease && asserted(lease) === undefined)
        this.failed('assertHeld', began, new Error('it says nothing of a lease that was released'))
      const outcome = await answer
      story.released(outcome)
      if (lost && outcome === 'released')
        this.failed('release', began, new Error('it says that it gave back what was lost before'))
    } catch (error) {
      story.released('unknown')
      this.failed('release', began, error)
    } finally {
      clearInterval(checks)
      this.tools.holding(undefined)
    }
  }

  /** At the end of its function: `run` gives back what it was given. Call what is returned when it has ended. */
  private leave(story: Story, lease: Lease, checks: NodeJS.Timeout): (error?: unknown) => void {
    const began = process.hrtime.bigint()
    story.releasing()
    clearInterval(checks)
    this.tools.holding(undefined)
    let over = false
    return (error) => {
      if (over) return
      over = true
      if (lease.held) this.failed('run', began, new Error('it ended and its lease is still held'))
      // It does not tell what became of its release. Without an answer it takes so long.
      const answered = Number(process.hrtime.bigint() - began) / 1e6 < this.tools.order.requestTimeout
      const lost = error instanceof HoldfastError && error.code === 'LOCK_LOST'
      story.released(lost ? 'expired' : answered ? 'released' : 'unknown')
    }
  }

  /** Reads, works, checks, writes: what locks are for. */
  private async update(name: string, lease: Lease): Promise<void> {
    const { resource, wishes } = this.tools
    const from = process.hrtime.bigint()
    const read = await resource.read(name, lease.token)
    await this.work()
    await wishes.stand('before the check', name)
    // What careful code does. It cannot see what happens between this line and the write.
    if (!(await sure(lease))) {
      if ('assertHeld' in lease && lease.held)
        this.late('a lease', from, `it was good for less than ${MARGIN_MS} ms`)
      return
    }
    await wishes.stand('after the check', name)
    await resource.write(name, lease.token, read)
  }

  private late(call: string, from: bigint, message: string): void {
    const at = process.hrtime.bigint()
    this.tools.tell({ kind: 'error', error: { call, from, at, message, code: LATE } })
  }

  private failed(call: string, from: bigint, error: unknown): void {
    const code = error instanceof HoldfastError ? { code: error.code } : {}
    const because = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : ''
    const text = error instanceof Error ? `${error.name}: ${error.message}${because}` : String(error)
    const at = process.hrtime.bigint()
    this.tools.tell({ kind: 'error', error: { call, from, at, message: text, ...code } })
  }
}

function sure(lease: Lease | (Lease & Doubtful)): boolean | Promise<boolean> {
  return 'sure' in lease ? lease.sure() : lease.remaining() >= MARGIN_MS
}
