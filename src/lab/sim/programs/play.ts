import type { NameInfo } from '../../../core/contract.ts'
import { memoryStore } from '../../../stores/memory/index.ts'
import { unleash } from '../nemesis.ts'
import { listenForNoise } from '../noise.ts'
import type { Ear } from '../noise.ts'
import type { Backend } from '../stores/backend.ts'
import { backendFor } from '../stores/index.ts'
import { World } from '../world.ts'
import { Actor } from './actor.ts'
import type { Place } from './actor.ts'
import { CLOSED_MS, HEALED_AT, LIMIT_MS, LONGEST_TTL, PATIENCE_MS, REQUEST_TIMEOUT_MS } from './bounds.ts'
import { examine } from './checks/index.ts'
import type { Program } from './program.ts'
import { Trace } from './trace.ts'
import type { Finding } from './trace.ts'

const SLICE_MS = 50
const ANSWERED_MS = 25

export interface Played {
  readonly program: Program
  readonly trace: Trace
  readonly findings: readonly Finding[]
  readonly log: readonly string[]
}

/** Runs a program in a world of its own, and checks what happened. */
export async function play(program: Program): Promise<Played> {
  const ear = listenForNoise()
  try {
    const stage = new Stage(program)
    await stage.play()
    const { trace, world } = stage
    noise(trace, ear)
    return { program, trace, findings: [...trace.findings, ...examine(program, trace)], log: world.log }
  } finally {
    ear.stop()
  }
}

function noise(trace: Trace, { rejections, warnings }: Ear): void {
  for (const reason of rejections) trace.found('noise', `a rejection was not handled: ${String(reason)}`)
  for (const warning of warnings) trace.found('noise', `a warning was given: ${warning}`)
}

class Stage {
  readonly world: World
  readonly trace: Trace = new Trace()
  private readonly program: Program
  private readonly backend: Backend
  private readonly places: readonly Place[]
  private readonly calm: boolean
  private working = 0
  private closing = 0

  constructor(program: Program) {
    this.program = program
    this.calm = program.world !== 'stormy'
    this.world = new World(program.seed)
    this.backend = backendOf(program, this.world)
    const { ttl, fair } = program
    const options = { ttl, fair, patience: PATIENCE_MS, requestTimeout: REQUEST_TIMEOUT_MS }
    this.places = Array.from({ length: program.processes }, (_, index) => ({
      index,
      process: this.world.addProcess(this.backend, options),
      world: this.world,
      trace: this.trace,
      calm: this.calm,
      open: new Set(),
      beside: (work) => this.work(work),
    }))
  }

  async play(): Promise<void> {
    const { world, trace, program, places } = this
    const { env } = world
    const at = (ms: number, callback: () => void): unknown => env.setTimer(callback, ms, true)
    const networks = places.map(({ process }) => process.network)
    unleash(program.faults, {
      world: env,
      backend: this.backend,
      networks,
      log: world.write,
      onKill: () => {},
    })
    at(HEALED_AT, () => networks.forEach((network) => network.heal()))
    program.tasks.forEach(({ process, at: from, steps }, index) => {
      const place = places[process]
      if (place !== undefined)
        this.work(env.sleep(from).then(() => new Actor(place, index).steps(steps, undefined, [])))
    })
    for (const { process, at: from, options } of program.closes) at(from, () => this.close(process, options))
    await this.until(() => this.working === 0, LIMIT_MS)
    await env.advance(ANSWERED_MS)
    if (this.tidy) this.leftovers('when all were done')
    for (const { index } of places) this.close(index, { drain: 0 })
    await this.until(() => this.working === 0 && this.closing === 0, CLOSED_MS)
    if (this.tidy || (this.calm && !this.runsOut)) this.leftovers('when all were closed')
    this.settled()
    // What was left to run out has done so by then.
    await env.advance(2 * LONGEST_TTL + PATIENCE_MS)
    for (const { index, process } of places)
      if (process.env.timers.background > 0)
        trace.found('noise', `p${index} was closed and still has timers in the end`)
    const { sent } = world
    await env.advance(LONGEST_TTL)
    if (world.sent > sent) trace.found('noise', `${world.sent - sent} requests were sent for nobody`)
    this.leftovers('in the end')
    trace.endedAt = world.now()
    for (const { index, process } of places)
      trace.requests.push(...process.network.requests.map((request) => ({ ...request, process: index })))
  }

  private get runsOut(): boolean {
    return this.trace.closes.some(({ options }) => options.release === false)
  }

  /** Everything that was taken was given back, and nothing was in the way. */
  private get tidy(): boolean {
    return this.calm && this.trace.leaks === 0 && !this.runsOut && this.working === 0
  }

  private settled(): void {
    const { trace, places } = this
    if (this.working > 0) trace.found('settles', `${this.working} tasks never came to their end`)
    for (const { index, process, open } of places) {
      if (trace.closeOf(index)?.to === undefined) trace.found('settles', `close() of p${index} did not end`)
      if (process.env.timers.foreground > 0 && this.working === 0)
        trace.found('noise', `p${index} was closed and has timers that keep it alive`)
      if (!this.runsOut)
        for (const { who, lease } of open)
          if (lease.held) trace.found('close', `${who} is still there when all is over`)
    }
  }

  private leftovers(when: string): void {
    for (const name of new Set(this.trace.calls.flatMap(({ wants }) => wants.map((want) => want.name)))) {
      const { holders, waiters }: NameInfo = this.backend.inspect(name)
      if (holders.length + waiters.length === 0) continue
      const what = `"${name}" has ${holders.length} holders and ${waiters.length} waiters`
      this.trace.found('leftovers', `${what} at the store ${when}`)
    }
  }

  private close(index: number, options: Program['closes'][number]['options']): void {
    const { trace, world } = this
    const place = this.places[index]
    if (place === undefined || trace.closeOf(index) !== undefined) return
    const closed = { process: index, options, from: world.now(), to: undefined as number | undefined }
    trace.closes.push(closed)
    this.closing++
    const done = (): void => {
      this.closing--
      closed.to = world.now()
      if (options.release === false) return
      for (const { who, lease } of place.open)
        if (lease.held || !lease.signal.aborted)
          trace.found(
            'close',
            `${who} ${lease.held ? 'is held' : 'was not told'} after close() of its Holdfast`,
          )
    }
    place.process.holdfast.close(options).then(done, (error: unknown) => {
      done()
      trace.found('close', `close() rejected with ${String(error)}`)
    })
  }

  private work(work: Promise<void>): void {
    this.working++
    const done = (): number => this.working--
    work.then(done, (error: unknown) => {
      done()
      this.trace.found('noise', `a task crashed: ${String(error)}`)
    })
  }

  private async until(done: () => boolean, longest: number): Promise<void> {
    const { world } = this
    const end = world.now() + longest
    await world.env.settle()
    while (!done() && world.now() < end) await world.env.advance(SLICE_MS)
  }
}

function backendOf({ world: kind }: Program, world: World): Backend {
  const { env } = world
  if (kind === 'direct') {
    const store = memoryStore({ now: () => env.instant() })
    return {
      nodes: [],
      connect: () => store,
      restarted: () => undefined,
      inspect: (name) => store.inspect(name, 0) as NameInfo,
    }
  }
  return backendFor('claim-queue', {
    now: () => world.now(),
    later: (ms, callback) => void env.setTimer(callback, ms, true),
    settings: {},
  })
}
