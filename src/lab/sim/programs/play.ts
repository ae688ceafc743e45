import type { NameInfo } from '../../../core/contract.ts'
import { memoryStore } from '../../../stores/memory/index.ts'
import { unleash } from '../nemesis.ts'
import { listenForNoise } from '../noise.ts'
import type { EventRecorder } from '../noise.ts'
import type { Backend } from '../stores/backend.ts'
import { backendFor } from '../stores/index.ts'
import { World } from '../world.ts'
import {
  CLOSED_MS,
  DEAF_TIMEOUT_MS,
  HEALED_AT,
  LIMIT_MS,
  LONGEST_TTL,
  PATIENCE_MS,
  REQUEST_TIMEOUT_MS,
} from './bounds.ts'
import { examine } from './checks/index.ts'
import { Crew } from './crew.ts'
import { brokenStore, deafStore, loudStore, revokingStore, untoldStore } from './broken-store.ts'
import type { Later, Rivals } from './broken-store.ts'
import { isCalm } from './program.ts'
import type { Program } from './program.ts'
import type { Finding, Trace } from './trace.ts'
import { Witness } from './witness.ts'

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
  const locks = program.unheard === true ? 'unheard' : 'heard'
  const ear = listenForNoise({ locks, print: program.broken === undefined })
  try {
    const stage = new Stage(program)
    await stage.play()
    const { trace, world } = stage
    noise(trace, ear, program)
    return { program, trace, findings: [...trace.findings, ...examine(program, trace)], log: world.log }
  } finally {
    ear.stop()
  }
}

function noise(trace: Trace, { rejections, warnings: all }: EventRecorder, { broken }: Program): void {
  // A store that is broken is told of.
  const warnings = all.filter(
    (warning) => broken === undefined || !warning.startsWith('HoldfastWarning: The'),
  )
  for (const reason of rejections) trace.found('noise', `a rejection was not handled: ${String(reason)}`)
  for (const warning of warnings) trace.found('noise', `a warning was given: ${warning}`)
}

class Stage {
  readonly world: World
  readonly trace: Trace
  private readonly program: Program
  private readonly backend: Backend
  private readonly crew: Crew
  private readonly witness: Witness
  private readonly calm: boolean

  constructor(program: Program) {
    this.program = program
    this.calm = isCalm(program)
    this.world = new World(program.seed)
    this.witness = new Witness(() => this.world.now())
    const backend = backendOf(program, this.world, this.witness)
    const { broken, mute, loud, line, deaf } = program
    const { env } = this.world
    const later: Later = (ms, call) => void env.setTimer(call, ms, true)
    const rivals: Rivals = { refused: new Set(), given: new Map() }
    const connect: Backend['connect'] = (network, chance) => {
      const own = backend.connect(network, chance)
      const store = line === undefined ? own : untoldStore(own, line, rivals)
      if (deaf === true) return deafStore(store, this.world.fork(), later)
      if (broken === undefined) return store
      const how = { share: broken, mute: mute === true, loud: loud === true }
      const wrong = brokenStore(store, how, this.world.fork(), later)
      return loud === true ? loudStore(wrong, this.world.fork()) : wrong
    }
    const seen: Backend['connect'] = (network, chance) => this.witness.before(connect(network, chance))
    this.backend = {
      ...backend,
      inspect: (name) => backend.inspect(name),
      // One that answers at once goes on doing so.
      connect: program.world === 'direct' ? connect : seen,
    }
    const { ttl, fair, settings = {} } = program
    const requestTimeout = deaf === true ? DEAF_TIMEOUT_MS : REQUEST_TIMEOUT_MS
    const options = { ttl, fair, patience: PATIENCE_MS, requestTimeout, ...settings }
    const processes = Array.from({ length: program.processes }, () =>
      this.world.addProcess(this.backend, options),
    )
    this.crew = new Crew(this.world, processes, this.calm)
    this.crew.onGrant = ({ name, token, inside }) => {
      if (inside === undefined && this.witness.wasRevoked(name, token))
        this.trace.found('signal', `"${name}" (token ${token}) was given after it was told to be taken away`)
    }
    this.crew.onClosed = (index) => this.closed(index)
    this.trace = this.crew.trace
  }

  async play(): Promise<void> {
    const { world, trace, program, crew } = this
    const { env } = world
    const { places } = crew
    const networks = places.map(({ process }) => process.network)
    unleash(program.faults, {
      world: env,
      backend: this.backend,
      networks,
      log: world.write,
      onKill: () => {},
    })
    env.setTimer(() => networks.forEach((network) => network.heal()), HEALED_AT, true)
    crew.start(program)
    await this.until(() => crew.working === 0, LIMIT_MS)
    await env.advance(ANSWERED_MS)
    if (this.tidy) this.leftovers('when all were done')
    for (const { index } of places) crew.close(index, { drain: 0 })
    await this.until(() => crew.working === 0 && crew.closing === 0, CLOSED_MS)
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
    this.witnessed()
    trace.endedAt = world.now()
    for (const { index, process } of places)
      trace.requests.push(...process.network.requests.map((request) => ({ ...request, process: index })))
  }

  private get runsOut(): boolean {
    return this.trace.closes.some(({ options }) => options.release === false)
  }

  /** Everything that was taken was given back, and nothing was in the way. */
  private get tidy(): boolean {
    return this.calm && this.trace.leaks === 0 && !this.runsOut && this.crew.working === 0
  }

  private settled(): void {
    const { trace, crew } = this
    const { places, working } = crew
    if (working > 0) trace.found('settles', `${working} tasks never came to their end`)
    for (const { index, process, open } of places) {
      if (trace.closeOf(index)?.to === undefined) trace.found('settles', `close() of p${index} did not end`)
      if (process.env.timers.foreground > 0 && working === 0)
        trace.found('noise', `p${index} was closed and has timers that keep it alive`)
      if (!this.runsOut)
        for (const { who, lease } of open)
          if (lease.held) trace.found('close', `${who} is still there when all is over`)
    }
  }

  /** What a process has at the store when its close() is over, that has said so. */
  private closed(index: number): void {
    const { trace, witness, backend, crew } = this
    for (const name of this.namesAskedFor()) {
      const { holders, waiters } = backend.inspect(name)
      const own = [...holders, ...waiters].some(
        ({ id, owner }) => owner === crew.places[index]?.process.name && !witness.isForgiven(id),
      )
      if (own && !this.saidToBeLeft(index, name))
        trace.found('close', `p${index} has "${name}" at the store, and its close() does not say so`)
    }
  }

  private witnessed(): void {
    const { trace, witness, crew } = this
    for (const { name, owner, at } of witness.unclaimed) {
      const index = crew.places.findIndex(({ process }) => process.name === owner)
      if (!this.saidToBeLeft(index, name))
        trace.found('leftovers', `p${index} has "${name}" at the store since ${at}, and never speaks of it`)
    }
    for (const { name } of witness.untrue)
      trace.found('bypass', `"${name}" was given up as if nobody had been seen behind it`)
  }

  /** What is disposed of has nobody to say it to. */
  private saidToBeLeft(index: number, name: string): boolean {
    const { left } = this.trace.closeOf(index) ?? {}
    return left === undefined || left.includes(name)
  }

  private namesAskedFor(): ReadonlySet<string> {
    return new Set(this.trace.calls.flatMap(({ wants }) => wants.map((want) => want.name)))
  }

  private leftovers(when: string): void {
    for (const name of this.namesAskedFor()) {
      const { holders, waiters }: NameInfo = this.backend.inspect(name)
      if (holders.length + waiters.length === 0) continue
      const what = `"${name}" has ${holders.length} holders and ${waiters.length} waiters`
      this.trace.found('leftovers', `${what} at the store ${when}`)
    }
  }

  private async until(done: () => boolean, longest: number): Promise<void> {
    const { world } = this
    const end = world.now() + longest
    await world.env.settle()
    while (!done() && world.now() < end) await world.env.advance(SLICE_MS)
  }
}

function backendOf({ world: kind, revokes }: Program, world: World, witness: Witness): Backend {
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
    watched: (store) => {
      const seen = witness.within(store)
      return revokes === true ? revokingStore(seen, witness.took) : seen
    },
  })
}
