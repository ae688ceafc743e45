import type { NameInfo } from '../../../core/contract.ts'
import { LockLostError, LockTimeoutError } from '../../../core/errors.ts'
import type { LockOptions, PermitOptions } from '../../../locks/options.ts'
import type { Lease } from '../../../runtime/lease.ts'
import type { Lock } from '../../../locks/lock.ts'
import type { LeaseSet, LockSet } from '../../../locks/lock-set.ts'
import type { Chapter } from '../diary.ts'
import { ASIDES } from './asides.ts'
import { inspected, listed } from './checks/looks.ts'
import { together, waited } from './checks/told.ts'
import { make, rootOf, wanted } from './context.ts'
import type { Inside, Made } from './context.ts'
import { Holding } from './holding.ts'
import type { Section, Step } from './program.ts'
import { CallerSignal } from './caller-signal.ts'
import { answeredInTime, codeOf } from './place.ts'
import type { Place } from './place.ts'
import type { Call, CallEnd } from './trace.ts'

type Locks = readonly [Made, ...Made[]]

/** One call that is made. */
interface Asking {
  readonly step: Section
  readonly locks: Locks
  readonly target: Lock | LockSet
  readonly call: Call
  readonly options: PermitOptions
  readonly around: Inside | undefined
}

/** Does what the steps of a program say, the way a user's code would, and never rejects. */
export class Actor {
  private readonly place: Place
  private readonly task: number
  private readonly chapters = new Map<Call, ReadonlyMap<string, Chapter>>()

  constructor(place: Place, task: number) {
    this.place = place
    this.task = task
  }

  async steps(list: readonly Step[], around: Inside | undefined, own: readonly Holding[]): Promise<void> {
    for (const step of list) await this.step(step, around, own)
  }

  private async step(step: Step, around: Inside | undefined, own: readonly Holding[]): Promise<void> {
    const { process, beside } = this.place
    switch (step.do) {
      case 'sleep':
        return process.env.sleep(step.ms)
      case 'detach':
        return beside(this.steps(step.steps, around, []))
      case 'downgrade':
        return this.downgrade(step.awaited, own)
      case 'inspect':
        return inspected(this.place, step.name)
      case 'list':
        return listed(this.place)
      case 'aside':
        return this.aside(step.which, own[0]?.whole)
      case 'force':
        return this.force(step.name)
      case 'lock':
        for (let round = 0; round < step.times; round++) await this.section(step, around)
    }
  }

  private async section(step: Section, around: Inside | undefined): Promise<void> {
    const { process, trace } = this.place
    const locks = step.locks.map((ref) => make(process.holdfast, ref, defaultsOf(step))) as unknown as Locks
    for (const { ref, lock } of locks) trace.onStripe(ref, lock.name)
    const call = this.begin(step, locks, around)
    const signal = step.sharedSignal === true ? this.place.signal : new CallerSignal()
    signal.join(call)
    const abort = (): void => signal.abort(this.now())
    const timer = (step.abort ?? 0) === 0 ? undefined : process.env.setTimer(abort, step.abort ?? 0, true)
    const options = optionsOf(step, signal.signal)
    if (step.abort === 0) abort()
    try {
      const all = step.all === true || locks.length > 1
      const target = all ? process.holdfast.all(locks.map(({ lock }) => lock)) : locks[0].lock
      const asking = { step, locks, target, call, options, around }
      await (step.how === 'run' ? this.run(asking) : this.take(asking))
    } catch (error) {
      if (call.end === undefined) this.settled(call, 'failed', error)
      // A section that ran: its lease may have ended before it did, and then says so.
      else if (codeOf(error) !== 'LOCK_LOST') trace.found('errors', `a section ended with ${String(error)}`)
      // Where a release may arrive twice, the answer to the second may come first.
      else if (this.place.calm && !this.mayBeLost(call))
        trace.found('errors', `a section of p${call.process} heard that its lease was lost, which it was not`)
    } finally {
      timer?.cancel()
      signal.leave(call)
      this.chapters.delete(call)
    }
  }

  private async run({ step, locks, target, call, options, around }: Asking): Promise<void> {
    let endedAt = 0
    let own: readonly Holding[] = []
    const { trace } = this.place
    const body = async (lease: Lease | LeaseSet): Promise<Call> => {
      own = this.granted(call, locks, lease)
      const inside = own.reduce<Inside | undefined>(
        (outer, { grant, made }, index) => ({
          lease: leasesOf(lease)[index] as Lease,
          grant,
          ref: made.ref,
          outer,
        }),
        around,
      )
      await this.steps(step.inside, inside, own)
      together(this.place.trace, lease)
      endedAt = this.now()
      for (const each of own) each.ending()
      if (step.throws === true) throw new Thrown()
      return call
    }
    try {
      const returned = await target.run(body, options)
      if (step.throws === true) trace.found('errors', 'run() forgot what its function threw')
      else if (returned !== call) trace.found('errors', 'run() forgot what its function returned')
    } catch (error) {
      const ended = step.throws === true ? 'rejected' : 'fulfilled'
      if (endedAt > 0 && error instanceof LockLostError && error.outcome?.status !== ended)
        trace.found('errors', 'the error of run() does not say what became of its function')
      if (!(error instanceof Thrown)) throw error
    } finally {
      // What became of the release nobody is told.
      for (const each of own) each.released('unknown')
    }
    answeredInTime(this.place, 'run', endedAt)
  }

  private async take({ step, locks, target, call, options, around }: Asking): Promise<void> {
    const lease = await (step.how === 'try' ? target.tryAcquire(options) : target.acquire(options))
    if (lease === null) return this.settled(call, 'refused')
    const own = this.granted(call, locks, lease)
    await this.steps(step.inside, around, own)
    together(this.place.trace, lease)
    if (step.end === 'never') return void this.place.trace.leaks++
    const endedAt = this.now()
    const [first] = own
    const held = lease.held
    for (const each of own) each.ending()
    // By nothing else: a second release would give back what the end of a block did not.
    const outcome = step.end === 'dispose' ? await disposed(lease) : await lease.release()
    for (const each of own) each.released(outcome ?? 'unknown')
    answeredInTime(this.place, 'release', endedAt)
    if (lease.held) first?.lied('after its release')
    // Where a look at a clock is no chance for the world to stand still.
    if (this.place.diary === undefined && asserts(lease))
      first?.lied('after its release, when it was asked to throw')
    const { calm } = this.place
    if (
      held &&
      outcome !== undefined &&
      outcome !== 'released' &&
      calm &&
      this.closed() === undefined &&
      !this.mayBeLost(call)
    )
      this.place.trace.found(
        'errors',
        `release() of a lease on "${lease.name}" that was held said ${outcome}`,
      )
    if (step.end === 'twice' && (await lease.release()) !== outcome)
      this.place.trace.found('errors', `a second release() on "${lease.name}" did not say ${outcome} again`)
  }

  private begin(step: Section, locks: Locks, around: Inside | undefined): Call {
    const { index, trace } = this.place
    const { how } = step
    const wait = waitOf(step)
    const wants = new Map(locks.map((made) => [made.lock.name, wanted(made, step, around)]))
    const call: Call = {
      process: index,
      task: this.task,
      how,
      wants: [...wants.values()],
      set: step.all === true,
      wait: how === 'try' || wait === 0 ? undefined : wait,
      maxHold: step.maxHold,
      ttl: step.ttl,
      from: this.now(),
      abortedAt: undefined,
      to: undefined,
      end: undefined,
      error: undefined,
    }
    trace.calls.push(call)
    const { diary } = this.place
    // What is shared is written down as part of what it is shared with.
    const roots = call.wants.filter(({ nesting }) => nesting === 'none')
    if (diary !== undefined)
      this.chapters.set(call, new Map(roots.map((want) => [want.name, diary.begin(want.name, want)])))
    return call
  }

  private granted(call: Call, locks: Locks, lease: Lease | LeaseSet): readonly Holding[] {
    this.settled(call, 'granted')
    // In this order: the process may stand still at any look, and a lease that was over before it is not held afterwards.
    const over = lease.remaining() <= 0 || lease.signal.aborted
    if (over && lease.held && this.closed() === undefined)
      this.place.trace.found('signal', `a grant of "${lease.name}" was over when it came`)
    together(this.place.trace, lease)
    // The first of several may have run out while the last one was waited for: then nobody is given any.
    const mayBeOver =
      this.closed() !== undefined || call.wants.some(({ name }) => this.place.trace.wasForced(name))
    if ('leases' in lease && !lease.held && !mayBeOver && this.place.diary === undefined)
      this.place.trace.found('signal', `a set of "${lease.name}" was given of which a part was over`)
    return leasesOf(lease).flatMap((each) => {
      const made = locks.find(({ lock }) => lock.name === each.name)
      const want = call.wants.find(({ name }) => name === each.name)
      if (made === undefined || want === undefined) return []
      const chapter = this.chapters.get(call)?.get(each.name)
      return [new Holding(this.place, { call, want, made, chapter, whole: lease }, each)]
    })
  }

  private settled(call: Call, end: CallEnd, error?: unknown): void {
    call.to = this.now()
    call.end = end
    if (error !== undefined)
      call.error = codeOf(error) ?? (error instanceof Error ? error.message : typeof error)
    if (error instanceof LockTimeoutError) waited(this.place, call, error)
    if (end !== 'granted')
      for (const chapter of this.chapters.get(call)?.values() ?? []) chapter.failed(call.error ?? 'busy')
    if (call.error === 'LOCK_TIMEOUT' && call.wait === undefined) call.end = 'refused'
  }

  private async downgrade(awaited: boolean, own: readonly Holding[]): Promise<void> {
    const [holding] = own
    const both = holding?.made.both
    if (holding === undefined || both === undefined || holding.grant.inside !== undefined) return
    if (holding.grant.mode !== 'write' || !holding.lease.held) return
    if (this.place.process.holdfast.store.downgrade === undefined) return
    const { grant } = holding
    const before = grant.readsFrom
    grant.readsFrom ??= this.now()
    holding.downgrading()
    const done = (): void => holding.downgraded('downgraded')
    const going = both.downgrade(holding.lease).then(done, (error: unknown) => {
      holding.downgraded('unknown')
      const code = codeOf(error)
      // Somebody inside counts on writing alone: nothing was done.
      if (code === 'LOCK_REENTRY') grant.readsFrom = before
      // Also one that was given and has not heard of it yet.
      const inside = this.place.trace.calls.some(({ wants }) =>
        wants.some((want) => want.mode === 'write' && want.inside && rootOf(want.inside) === grant),
      )
      const excused =
        code === 'LOCK_LOST' ||
        !this.place.calm ||
        this.closed() !== undefined ||
        (code === 'LOCK_REENTRY' && inside)
      if (!excused || code === undefined)
        this.place.trace.found('errors', `downgrade() said ${String(error)}`)
    })
    if (awaited) await going
  }

  /** A mistake is told at once, and nothing is asked of the store; and a look is a look. */
  private async aside(which: number, lease: Lease | LeaseSet | undefined): Promise<void> {
    const { process, trace, calm } = this.place
    const aside = ASIDES[which]
    if (aside === undefined) return
    const { what, code } = aside
    const ended = await Promise.resolve()
      .then(() => aside.call({ holdfast: process.holdfast, env: process.env, lease, calm }))
      .then(
        () => 'fine',
        (error: unknown) => codeOf(error) ?? String(error),
      )
    if (ended === code || (ended === 'CLOSED' && this.closed() !== undefined)) return
    trace.found('errors', `${what}: ${ended} instead of ${code}`)
  }

  /** As `holdfast release --force` does it. */
  private async force(name: string): Promise<void> {
    const { trace, process } = this.place
    const { store } = process.holdfast
    // A store that is broken may never answer.
    const asked = (call: () => unknown): Promise<unknown> =>
      new Promise((resolve) => {
        const timer = process.env.setTimer(() => resolve(undefined), 2 * FORCE_MS, true)
        Promise.resolve()
          .then(call)
          .then(resolve, () => resolve(undefined))
          .finally(() => timer.cancel())
          .catch(() => undefined)
      })
    const info = await asked(() => store.inspect(name, FORCE_MS))
    // No answer, or one of a store that is broken.
    if (!Array.isArray((info as NameInfo | undefined)?.holders)) return
    const forced = { name, from: this.now(), to: Infinity }
    trace.forced.push(forced)
    for (const { id } of (info as NameInfo).holders) await asked(() => store.withdraw({ name, id }, FORCE_MS))
    forced.to = this.now()
  }

  private mayBeLost(call: Call): boolean {
    const { trace } = this.place
    return (
      call.wants.some(({ name }) => trace.wasForced(name)) ||
      trace.grants.some((grant) => grant.call === call && grant.lost)
    )
  }

  private closed(): unknown {
    return this.place.trace.closeOf(this.place.index)
  }

  private now(): number {
    return this.place.world.now()
  }
}

/** By a user's function. */
class Thrown extends Error {}

const FORCE_MS = 200

/** As `await using` does it. What became of it nobody is told. */
async function disposed(lease: Lease | LeaseSet): Promise<undefined> {
  await lease[Symbol.asyncDispose]()
}

function asserts(lease: Lease | LeaseSet): boolean {
  try {
    lease.assertHeld()
    return true
  } catch (error) {
    if (error instanceof LockLostError) return false
    throw error
  }
}

function leasesOf(lease: Lease | LeaseSet): readonly Lease[] {
  return 'leases' in lease ? lease.leases : [lease]
}

function optionsOf(step: Section, signal: AbortSignal): PermitOptions {
  const { how, ttl, permits, maxHold, abort } = step
  const wait = waitOf(step)
  const atLock = isAtLock(step)
  return {
    ...(how === 'try' || wait === undefined || atLock ? {} : { wait }),
    ...(ttl === undefined ? {} : { ttl }),
    ...(permits === undefined ? {} : { permits }),
    ...(maxHold === undefined || atLock ? {} : { maxHold }),
    ...(abort === undefined ? {} : { signal }),
  }
}

function defaultsOf(step: Section): LockOptions {
  const { maxHold } = step
  const wait = waitOf(step)
  if (!isAtLock(step)) return {}
  return { ...(wait === undefined ? {} : { wait }), ...(maxHold === undefined ? {} : { maxHold }) }
}

const waitOf = ({ wait, forever }: Section): number | undefined => (forever === true ? Infinity : wait)

/** A set has no locks of its own to say it to. */
function isAtLock({ atLock, all, locks }: Section): boolean {
  return atLock === true && all !== true && locks.length === 1
}
