import type { Holdfast } from '../../../locks/holdfast.ts'
import type { SimProcess, World } from '../world.ts'
import { Actor } from './actor.ts'
import { CallerSignal } from './caller-signal.ts'
import type { Place } from './place.ts'
import type { Program } from './program.ts'
import { Trace } from './trace.ts'
import type { Closed, Grant } from './trace.ts'
import type { CloseResult } from '../../../runtime/closing.ts'

type CloseOptions = Program['closes'][number]['options']

/** By then whoever holds something has heard of a close. */
const TOLD_MS = 1

/** Does what a program says, in the processes of a world. */
export class Crew {
  readonly trace: Trace = new Trace()
  readonly places: readonly Place[]
  /** Tasks that have not come to their end, and closes. */
  working = 0
  closing = 0
  /** A process was closed, and said what is left of it. */
  onClosed: (index: number) => void = () => undefined
  /** Somebody was given a lease. */
  onGrant: (grant: Grant) => void = () => undefined
  private readonly world: World
  private readonly tasks = new Map<number, number>()

  /** `noted`: what is asked for and held is written into the processes' diaries, too, for the checks of a scenario. */
  constructor(
    world: World,
    processes: readonly SimProcess[],
    calm: boolean,
    noted: 'noted' | 'traced' = 'traced',
  ) {
    this.world = world
    this.places = processes.map((process, index) => ({
      index,
      process,
      world,
      trace: this.trace,
      ...(noted === 'noted' && { diary: process.diary }),
      calm,
      open: new Set(),
      signal: new CallerSignal(),
      beside: (work) => this.work(index, work),
      given: (grant) => this.onGrant(grant),
    }))
  }

  start({ tasks, closes }: Pick<Program, 'tasks' | 'closes'>): void {
    tasks.forEach(({ process, at, steps }, index) => {
      const place = this.places[process]
      if (place === undefined) return
      const { env } = place.process
      const begin = (): Promise<void> => new Actor(place, index).steps(steps, undefined, [])
      this.work(process, env.sleep(at).then(begin))
    })
    for (const { process, at, options, dispose } of closes)
      this.places[process]?.process.env.setTimer(() => this.close(process, options, dispose), at, true)
  }

  /** Tasks of one process that are under way. */
  workingIn(index: number): number {
    return this.tasks.get(index) ?? 0
  }

  close(index: number, options: CloseOptions, dispose?: true): void {
    const { trace, world } = this
    const place = this.places[index]
    if (place === undefined) return
    if (trace.closeOf(index) !== undefined) return this.closeAgain(index, options)
    const closed: Closed = { process: index, options, from: world.now(), to: undefined, left: undefined }
    trace.closes.push(closed)
    this.closing++
    const open = [...place.open]
    const done = (result?: CloseResult): void => {
      this.closing--
      closed.to = world.now()
      closed.left = result?.leftToExpire.map(({ name }) => name)
      if (result !== undefined) this.says(place, closed.options, result)
      this.onClosed(index)
      if (closed.options.release === false) return
      for (const { who, lease } of place.open)
        if (lease.held || !lease.signal.aborted)
          trace.found(
            'close',
            `${who} ${lease.held ? 'is held' : 'was not told'} after close() of its Holdfast`,
          )
    }
    const { holdfast } = place.process
    const closing = dispose === true ? disposed(holdfast) : holdfast.close(options)
    closing.then(done, (error: unknown) => {
      done()
      trace.found('close', `close() rejected with ${String(error)}`)
    })
    const told = (): void => {
      for (const one of open)
        if (place.open.has(one) && !one.lease.signal.aborted)
          trace.found('close', `${one.who} was not told that its Holdfast is being closed`)
    }
    world.env.setTimer(told, TOLD_MS, true)
  }

  /** What it took from its owners, and what it left at the store. */
  private says({ open }: Place, { release }: CloseOptions, { cutShort, leftToExpire }: CloseResult): void {
    for (const { who, lease, stays } of open) {
      const { name } = lease
      const left = leftToExpire.find((one) => one.name === name)?.within ?? 0
      if (!stays) continue
      if (release !== false && !cutShort.includes(name))
        this.trace.found('close', `${who} was cut short, and close() does not say so`)
      if (release === false && left < Math.floor(lease.remaining()))
        this.trace.found('close', `${who} was left to run out, and close() does not say so`)
    }
  }

  /** A later call may bring the end forward, and is over when the first is. */
  private closeAgain(index: number, options: CloseOptions): void {
    const { trace, world, places } = this
    const first = trace.closeOf(index)
    const holdfast = places[index]?.process.holdfast
    if (first === undefined || holdfast === undefined || first.to !== undefined) return
    const { drain, release } = options
    const sooner = drain === undefined ? Infinity : world.now() - first.from + drain
    first.options = {
      ...first.options,
      drain: Math.min(first.options.drain ?? Infinity, sooner),
      ...(release === undefined ? {} : { release }),
    }
    this.closing++
    const done = (): void => {
      this.closing--
      const at = world.now()
      const look = (): void => {
        if ((first.to ?? Infinity) > at)
          trace.found('close', `a second close() of p${index} ended before the first`)
      }
      world.env.setTimer(look, TOLD_MS, true)
    }
    holdfast.close(options).then(done, (error: unknown) => {
      done()
      trace.found('close', `a second close() rejected with ${String(error)}`)
    })
  }

  private work(index: number, work: Promise<void>): void {
    const count = (by: number): void => {
      this.working += by
      this.tasks.set(index, this.workingIn(index) + by)
    }
    count(1)
    const done = (): void => count(-1)
    work.then(done, (error: unknown) => {
      done()
      this.trace.found('noise', `a task crashed: ${String(error)}`)
    })
  }
}

/** As `await using` does it. */
async function disposed(holdfast: Holdfast): Promise<undefined> {
  await holdfast[Symbol.asyncDispose]()
}
