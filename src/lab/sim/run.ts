import { BOUND_MS, CHAOS_MS, PROCESSES, ROUNDS } from './bounds.ts'
import { examine } from './examine.ts'
import { record } from './outcome.ts'
import { faultsFrom } from './faults.ts'
import type { Fault } from './fault.ts'
import { kindsFor } from './names.ts'
import type { NameKind } from './names.ts'
import { unleash } from './nemesis.ts'
import { listenForNoise } from './noise.ts'
import { Crew } from './programs/crew.ts'
import { guestsFrom } from './programs/generate.ts'
import { Resource } from './resource.ts'
import { scenarioOf } from './scenarios.ts'
import { backendFor } from './stores/index.ts'
import type { Traces } from './traces.ts'
import type { Scenario, SimulateOptions, Simulated } from './types.ts'
import { task } from './workload.ts'
import { World } from './world.ts'
import type { SimProcess } from './world.ts'

const SLICE_MS = 100
/** A request that nothing is in the way of has its answer by then. */
const ANSWERED_MS = 10

/** Runs one seed of one scenario, and checks it. */
export async function simulate({ scenario: which, seed, faults }: SimulateOptions): Promise<Simulated> {
  const scenario = scenarioOf(which)
  const ear = listenForNoise()
  try {
    const traces = await run(scenario, seed, faults)
    return record(scenario, seed, traces, examine(traces, ear))
  } finally {
    ear.stop()
  }
}

async function run(scenario: Scenario, seed: number, faults: readonly Fault[] | undefined): Promise<Traces> {
  const { ttl, patience, store, settings, faults: kinds } = scenario
  const world = new World(seed)
  const { env } = world
  const backend = backendFor(store, {
    now: () => world.now(),
    later: (ms, callback) => void env.setTimer(callback, ms, true),
    settings,
  })
  const chance = world.fork()
  const fair = chance.next() < 0.5 ? 'strict' : 'turns'
  for (let index = 0; index < PROCESSES; index++) {
    world.addProcess(backend, { ttl, patience, requestTimeout: patience / 2, fair })
  }
  const names = twoOf(kindsFor(world.capabilities()), chance.next())
  const target = { kinds, processes: PROCESSES, nodes: backend.nodes.length, names, ttl, until: CHAOS_MS }
  const planned = faultsFrom(world.fork(), target)
  const plan = faults ?? planned
  const killed = new Set<SimProcess>()
  const onKill = (index: number): void => void killed.add(world.processes[index] as SimProcess)
  const networks = world.processes.map(({ network }) => network)
  unleash(plan, { world: env, backend, networks, log: world.write, onKill })

  let over = false
  const calm = kinds.length === 0
  const rounds = calm ? ROUNDS.calm : ROUNDS.stormy
  const crashes: unknown[] = []
  const working = new Map<SimProcess, number>()
  const resource = new Resource()
  for (const process of world.processes) {
    const tasks = 2 + chance.below(2)
    working.set(process, tasks)
    for (let index = 0; index < tasks; index++) {
      const place = { ...process, shutdown: process.shutdown.signal, world: env, random: world.fork() }
      const common = { resource, names, ttl, calm, rounds, over: () => over }
      const done = (): unknown => working.set(process, (working.get(process) ?? 0) - 1)
      task({ ...place, ...common }).then(done, (error: unknown) => {
        crashes.push(error)
        done()
      })
    }
  }
  const crew = new Crew(world, world.processes, calm, 'noted')
  const { shared, permits, ...longest } = world.capabilities()
  // A simulated session lives as long as its first claim says, for all that are in it.
  const maxTtl = store === 'session' ? ttl : longest.maxTtl
  const until = { maxTtl, processes: PROCESSES, ttl, until: CHAOS_MS / 2, calm }
  // Not always: their short leases shorten every renewal that they share a request with, and nothing arrives late any more.
  if (seed % 2 === 1) crew.start(guestsFrom(world.fork().uint32(), { shared, permits, ...until }))
  await env.advance(CHAOS_MS)

  over = true
  const healedAt = world.now()
  const alive = world.processes.filter((process) => !killed.has(process))
  for (const { network, env: own } of alive) {
    network.heal()
    own.heal()
  }
  // Now and then everybody is told to stop at this moment, wherever he stands.
  if (chance.next() < 0.3) for (const { shutdown } of alive) shutdown.abort()
  const pass = (done: () => boolean): Promise<void> => passTime(world, done, BOUND_MS)
  const idle = (process: SimProcess): boolean =>
    working.get(process) === 0 && crew.workingIn(world.processes.indexOf(process)) === 0
  await pass(() => alive.every(idle))
  const quiet = (): boolean =>
    alive.every(({ env: own, network }) => own.timers.foreground === 0 && network.underWay === 0)
  for (let look = 0; look < 3; look++) {
    await pass(quiet)
    await env.advance(ANSWERED_MS)
  }
  const remains = names.map((name) => backend.inspect(name))
  // Whatever is still under way arrives, and what the dead left behind runs out.
  await env.advance(2 * ttl + patience)
  const before = world.sent
  await env.advance(2 * ttl)
  // A lease that nobody gives back is renewed for as long as its process lives, and a long program is not over yet.
  const wanted = crew.trace.leaks > 0 || !alive.every(idle)
  const stray = wanted ? 0 : world.sent - before
  const endedAt = world.now()
  const numbers = alive.map((process) => world.processes.indexOf(process))
  for (const index of numbers) crew.close(index, {})
  const closed = (index: number): boolean => crew.trace.closeOf(index)?.to !== undefined
  await pass(() => numbers.every(closed))
  for (const index of numbers)
    if (!closed(index)) crew.trace.found('settles', `close() of p${index} did not end`)
  // A section that was cut short still has its own work to end.
  await pass(() => alive.every(idle))
  await env.settle()
  const { trace: calls } = crew
  calls.endedAt = world.now()
  const what = { scenario, world, backend, names, resource, plan, alive, crashes, fair, calls } as const
  return { ...what, remains, healedAt, endedAt, stray }
}

/** Lets time pass until something is so, or for the longest time that it may take. */
async function passTime(world: World, done: () => boolean, longest: number): Promise<void> {
  const end = world.now() + longest
  await world.env.settle()
  while (!done() && world.now() < end) await world.env.advance(SLICE_MS)
}

function twoOf(kinds: readonly NameKind[], chance: number): readonly NameKind[] {
  const first = Math.floor(chance * kinds.length)
  const second = Math.floor(chance * 97) % kinds.length
  return [...new Set([kinds[first] ?? 'mutex', kinds[second] ?? 'mutex'])]
}
