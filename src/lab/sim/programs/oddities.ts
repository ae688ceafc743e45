import { Random } from '../../../testkit/random.ts'
import { isCalm } from './program.ts'
import type { ClosePlan, LockRef, Program, Section, Settings, Step, TaskPlan } from './program.ts'

/** What is rare, by chances of its own: it changes nothing of what else a seed makes. */

const RARE = 0x5bd1e995
const RARER = 0x2c1b3c6d
const RAREST = 0x1b873593
const IN_DOUBT = 0x38495ab5
const PLACES = 0x7feb352d
const EARLY = 0x846ca68b
const TAKEN = 0x6b43a9b5
const DEAF = 0x3c6ef372
/** More than what is done in one go: see upkeep.ts and session.ts. */
const MANY = 520

/** `permits`: there are semaphores. */
export function odder(program: Program, permits: boolean): Program {
  return deaf(takenEarly(leavesEarly(elsewhere(inDoubt(rarest(rarer(rare(program), permits))), permits))))
}

/**
 * A first request is slow, and overtaken by its repetition. When it arrives, its process is done with the lock, or has given up: the answer
 * to the second one is late, too, and somebody else may hold it.
 */
function inDoubt(program: Program): Program {
  const chance = new Random((program.seed ^ IN_DOUBT) >>> 0)
  if (program.world !== 'stormy' || chance.next() >= 0.2) return program
  const { processes } = program
  const process = chance.below(processes)
  const givesUp = chance.next() < 0.5
  const common = { do: 'lock', locks: [{ name: 'doubt', mode: 'mutex' }], times: 1, end: 'release' } as const
  const abort = givesUp ? { abort: 150 + chance.below(200) } : {}
  const first: Section = { ...common, ...abort, how: 'run', wait: 4000, inside: [] }
  const other: Section = { ...common, how: 'try', inside: [{ do: 'sleep', ms: 250 + chance.below(100) }] }
  const tasks = [
    { process, at: 1, steps: [first] },
    ...(givesUp ? [{ process: (process + 1) % processes, at: 1, steps: [other] }] : []),
  ]
  const delay = { kind: 'delay', process, request: 0, reply: 0, event: 0 } as const
  const faults = [
    { ...delay, at: 0, until: 20, request: 300 + chance.below(900) },
    { ...delay, at: 100, until: 500, reply: givesUp ? 150 : 0 },
  ]
  return { ...program, tasks: [...program.tasks, ...tasks], faults: [...faults, ...program.faults] }
}

function rarest(program: Program): Program {
  const chance = new Random((program.seed ^ RAREST) >>> 0)
  const [mute, twice, long] = [chance.next() < 0.4, chance.next() < 0.3, chance.next() < 0.01]
  const again = (section: Section): Section => ({
    ...section,
    inside: section.inside.flatMap((step) => (step.do === 'downgrade' ? downgradeAgain(step, chance) : step)),
  })
  const tasks = twice ? program.tasks.map((task) => changed(task, again)) : program.tasks
  return {
    ...program,
    tasks: long ? [...tasks, ...marathon(program.processes, chance)] : tasks,
    ...(mute && program.broken !== undefined && { mute }),
  }
}

/** A writer that goes on as a reader gives its lock back before the store has said so, while readers of its process share it. */
function leavesEarly(program: Program): Program {
  const chance = new Random((program.seed ^ EARLY) >>> 0)
  if (program.world !== 'stormy' || chance.next() >= 0.06) return program
  const process = chance.below(program.processes)
  const common = { do: 'lock', how: 'run', times: 1, wait: 4000, end: 'release' } as const
  const hold = (ms: number): Step => ({ do: 'sleep', ms: chance.below(ms) })
  const write: Section = {
    ...common,
    locks: [{ name: 'early', mode: 'write' }],
    inside: [{ do: 'downgrade', awaited: false }, hold(60)],
  }
  const read: Section = { ...common, locks: [{ name: 'early', mode: 'read' }], inside: [hold(400)] }
  const what = chance.next() < 0.5 ? 'request' : 'reply'
  const loss = {
    kind: 'loss',
    at: 0,
    process,
    what,
    method: 'downgrade',
    times: 1 + chance.below(4),
  } as const
  const readers = Array.from({ length: 3 }, () => ({ process, at: 5 + chance.below(60), steps: [read] }))
  return {
    ...program,
    tasks: [...program.tasks, { process, at: 0, steps: [write] }, ...readers],
    faults: [...program.faults, loss],
  }
}

/** Where connections for messages are swallowed, refused, or made in no hurry. */
function deaf(program: Program): Program {
  const chance = new Random((program.seed ^ DEAF) >>> 0)
  const { world, broken } = program
  return chance.next() < 0.1 && world !== 'stormy' && broken === undefined
    ? { ...program, deaf: true }
    : program
}

/** A lock is taken away by an operator before its holder has heard that it has it. */
function takenEarly(program: Program): Program {
  const chance = new Random((program.seed ^ TAKEN) >>> 0)
  const { world, processes } = program
  if (world !== 'stormy' || processes < 2 || chance.next() >= 0.06) return program
  const process = chance.below(processes)
  const how = chance.pick<Section['how']>(['run', 'acquire', 'try'])
  const lock = chance.pick<LockRef>([
    { name: 'taken', mode: 'mutex' },
    { name: 'taken', mode: 'read' },
  ])
  const common = { do: 'lock', locks: [lock], times: 1, end: 'release' } as const
  const hold: Step = { do: 'sleep', ms: chance.below(60) }
  const section: Section = { ...common, how, ...(how === 'try' ? {} : { wait: 4000 }), inside: [hold] }
  const other = (process + 1) % processes
  const before = { ...common, locks: [{ name: 'before', mode: 'mutex' }] } as const
  const tasks: TaskPlan[] = [
    // Whoever has waited listens to what the store has to tell.
    { process: other, at: 0, steps: [{ ...before, how: 'try', inside: [{ do: 'sleep', ms: 60 }] }] },
    { process, at: 3, steps: [{ ...before, how: 'run', wait: 4000, inside: [] }] },
    { process, at: 20, steps: [section] },
    ...(chance.next() < 0.5 ? [{ process, at: 21, steps: [section] }] : []),
    { process: other, at: 30, steps: [{ do: 'force', name: 'taken' }] },
  ]
  const reply = 60 + chance.below(100)
  const late = { kind: 'delay', process, at: 18, until: 25, request: 0, reply, event: 0 } as const
  return { ...program, revokes: true, tasks: [...program.tasks, ...tasks], faults: [late, ...program.faults] }
}

/** Other stores and settings than most have, and more tasks. */
function elsewhere(program: Program, permits: boolean): Program {
  const chance = new Random((program.seed ^ PLACES) >>> 0)
  const [told, loud, set, many] = [chance.next(), chance.next(), chance.next(), chance.next()]
  const [before, forever, runsOut] = [chance.next() < 0.1, chance.next() < 0.1, chance.next() < 0.15]
  const revokes = chance.next() < 0.15
  const line = told < 0.04 ? 'none' : told < 0.07 ? 'untold' : undefined
  const change = (section: Section): Section => ({
    ...section,
    ...(before && section.abort !== undefined && chance.next() < 0.4 && { abort: 0 }),
    ...(forever && section.wait !== undefined && section.wait > 1000 && { forever: true as const }),
  })
  const tasks = before || forever ? program.tasks.map((task) => changed(task, change)) : program.tasks
  const [first] = program.closes
  const late =
    runsOut && first !== undefined && first.options.release === undefined ? leavesIt(first, chance) : []
  const closes = [...program.closes, ...late]
  const placed: Program = {
    ...program,
    ...(line !== undefined && { line }),
    ...(revokes && { revokes }),
    ...(loud < 0.5 && program.broken !== undefined && { loud: true as const }),
    ...(set < 0.15 && { settings: settings(program, chance) }),
    tasks,
    closes,
  }
  if (many >= 0.006) return placed
  // To look at the waits of all of them would take longer than to play them.
  const more = isCalm(placed) ? hoard : permits && chance.next() < 0.5 ? permitsOfMany : impatient
  return { ...placed, tasks: [...tasks, ...more(program, chance)] }
}

/** Whoever is asked to close it once more leaves what is held to run out. */
function leavesIt({ process, at }: ClosePlan, chance: Random): ClosePlan[] {
  return [{ process, at: at + chance.below(30), options: { release: false } }]
}

function settings({ world }: Program, chance: Random): Settings {
  const count = chance.pick([1, 2, 10])
  const ms = chance.pick([0, 1])
  const turn = chance.pick<Settings['turn']>([undefined, { count }, { ms }, { count, ms }])
  const wall = turn === undefined || chance.next() < 0.4
  return {
    ...(turn !== undefined && { turn }),
    ...(wall && { clock: { wall: false as const } }),
    ...(world !== 'direct' && chance.next() < 0.5 && { closeStore: true as const }),
  }
}

/** So many leases that one request does not renew them all. */
function hoard({ processes, ttl }: Program, chance: Random): TaskPlan[] {
  const process = chance.below(processes)
  const section = (index: number): Section => ({
    do: 'lock',
    locks: [{ name: `hoard${index}`, mode: 'mutex' }],
    how: 'acquire',
    times: 1,
    wait: 4000,
    inside: [{ do: 'sleep', ms: ttl }],
    end: 'release',
  })
  return Array.from({ length: MANY }, (_, index) => ({ process, at: 0, steps: [section(index)] }))
}

/** As many permits of one lock, of which some are asked for when others have come. */
function permitsOfMany({ processes }: Program, chance: Random): TaskPlan[] {
  const process = chance.below(processes)
  const section: Section = {
    do: 'lock',
    locks: [{ name: 'permits', mode: 'permits', capacity: MANY }],
    how: 'acquire',
    times: 1,
    wait: 4000,
    inside: [{ do: 'sleep', ms: 100 }],
    end: 'release',
  }
  return Array.from({ length: MANY }, () => ({ process, at: chance.below(60), steps: [section] }))
}

/** So many who wait for one lock that their time is not over for all in one turn of the event loop. */
function impatient({ processes }: Program, chance: Random): TaskPlan[] {
  const process = chance.below(processes)
  const wait = 20 + chance.below(40)
  const common = {
    do: 'lock',
    locks: [{ name: 'impatient', mode: 'mutex' }],
    times: 1,
    end: 'release',
  } as const
  const holder: Section = { ...common, how: 'try', inside: [{ do: 'sleep', ms: 2 * wait }] }
  const waiter: Section = { ...common, how: 'acquire', wait, inside: [] }
  const waiters = Array.from({ length: MANY }, () => ({ process, at: 5, steps: [waiter] }))
  return [{ process: chance.below(processes), at: 0, steps: [holder] }, ...waiters]
}

/** Before the first is answered, or when it has failed. */
function downgradeAgain(step: Step, chance: Random): Step[] {
  const pause: Step = { do: 'sleep', ms: chance.below(60) }
  return [step, ...(chance.next() < 0.5 ? [pause] : []), { do: 'downgrade', awaited: true }]
}

/** More hand-overs than a process makes without a look at what else there is. */
function marathon(processes: number, chance: Random): TaskPlan[] {
  const process = chance.below(processes)
  const section: Section = {
    do: 'lock',
    locks: [{ name: 'marathon', mode: 'mutex' }],
    how: 'run',
    times: 150,
    wait: 4000,
    inside: [],
    end: 'release',
  }
  return Array.from({ length: 3 }, () => ({ process, at: chance.below(5), steps: [section] }))
}

function rare(program: Program): Program {
  const chance = new Random((program.seed ^ RARE) >>> 0)
  const [unheard, broken, mixed] = [chance.next() < 0.4, chance.next() < 0.08, chance.next() < 0.1]
  const again = chance.next() < 0.3 ? closeAgain(program.closes[0], chance) : []
  const mixUp = (section: Section): Section => ({ ...section, locks: mixedUp(section.locks, chance) })
  return {
    ...program,
    tasks: mixed ? program.tasks.map((task) => changed(task, mixUp)) : program.tasks,
    closes: [...program.closes, ...again],
    ...(unheard && { unheard: true as const }),
    ...(broken && { broken: chance.pick([0.02, 0.1, 0.3]) }),
  }
}

function rarer(program: Program, permits: boolean): Program {
  const chance = new Random((program.seed ^ RARER) >>> 0)
  const [again, atLock, shared] = [chance.next() < 0.2, chance.next() < 0.2, chance.next() < 0.2]
  const dispose = chance.next() < 0.3
  const change = (section: Section): Section => {
    const one = atLock && chance.next() < 0.5 ? { ...section, atLock: true as const } : section
    const other = shared && one.abort !== undefined ? { ...one, sharedSignal: true as const } : one
    return again && chance.next() < 0.5 ? entersAgain(other, chance) : other
  }
  const [first, ...later] = program.closes
  const plain = first !== undefined && Object.keys(first.options).length === 0
  const tasks = program.tasks.map((task) => changed(task, change))
  const many = permits && chance.next() < 0.03 ? crowd(program.processes, chance) : []
  const quick = chance.next() < 0.1 ? hasty(program.processes, chance) : []
  return {
    ...program,
    tasks: [...tasks, ...many, ...quick],
    closes: plain && dispose ? [{ ...first, dispose: true as const }, ...later] : program.closes,
  }
}

/** Somebody is in more of a hurry than whoever closed it first. */
function closeAgain(first: ClosePlan | undefined, chance: Random): ClosePlan[] {
  if (first === undefined || first.options.release === false) return []
  const options = chance.pick<ClosePlan['options']>([{}, { drain: 0 }, { drain: 10 }, { timeout: 50 }])
  return [{ process: first.process, at: first.at + chance.below(60), options }]
}

/** Some of those who use a semaphore think that it has another size. */
function mixedUp(locks: readonly LockRef[], chance: Random): readonly LockRef[] {
  return locks.map((lock) =>
    lock.capacity === undefined || chance.next() < 0.6 ? lock : { ...lock, capacity: lock.capacity + 1 },
  )
}

/** A section that takes its own lock again, for a shorter time than it has it itself. */
function entersAgain(section: Section, chance: Random): Section {
  const { locks, how, inside } = section
  const [lock] = locks
  if (how !== 'run' || locks.length > 1 || lock === undefined || lock.capacity !== undefined) return section
  const own: LockRef = { ...lock, reentrant: true }
  const hold = (): Step => ({ do: 'sleep', ms: chance.below(80) })
  const inner: Section = {
    do: 'lock',
    locks: [own],
    how: chance.pick(['run', 'acquire', 'try']),
    times: 1,
    // For one that is not inside any more when it asks.
    wait: 1 + chance.below(80),
    maxHold: 1 + chance.below(40),
    inside: [hold()],
    end: 'release',
  }
  return { ...section, locks: [own], inside: [...inside, inner, hold()] }
}

/** So many permits of one process that a list of them would not do, and some more who want one. */
function crowd(processes: number, chance: Random): TaskPlan[] {
  const capacity = 18 + chance.below(30)
  const process = chance.below(processes)
  const section = (): Section => ({
    do: 'lock',
    locks: [{ name: 'crowd', mode: 'permits', capacity }],
    how: chance.pick(['run', 'acquire', 'acquire', 'try']),
    times: 1 + chance.below(2),
    wait: chance.pick([0, 20, 4000, 4000]),
    ...(chance.next() < 0.2 && { abort: chance.below(30) }),
    inside: [{ do: 'sleep', ms: chance.below(40) }],
    end: 'release',
  })
  const size = capacity + chance.below(12)
  return Array.from({ length: size }, () => ({ process, at: chance.below(30), steps: [section()] }))
}

/** Somebody asks, and does not want it any more before the answer comes; others come right behind. */
function hasty(processes: number, chance: Random): TaskPlan[] {
  const process = chance.below(processes)
  const common = { do: 'lock', locks: [{ name: 'hasty', mode: 'mutex' }], times: 1, end: 'release' } as const
  const first: Section = { ...common, how: 'try', abort: chance.next(), inside: [] }
  const then: Section = { ...common, how: 'run', wait: 4000, inside: [{ do: 'sleep', ms: chance.below(5) }] }
  return [
    { process, at: 0, steps: [first] },
    { process, at: 0, steps: [then] },
  ]
}

/** The same task with other sections, from the outermost to those inside. */
function changed(task: TaskPlan, change: (section: Section) => Section): TaskPlan {
  const all = (steps: readonly Step[]): readonly Step[] =>
    steps.map((step) => {
      if (step.do === 'detach') return { ...step, steps: all(step.steps) }
      if (step.do !== 'lock') return step
      const section = change(step)
      // What is new in it stays as it is.
      const old = section.inside.slice(0, step.inside.length)
      return { ...section, inside: [...all(old), ...section.inside.slice(step.inside.length)] }
    })
  return { ...task, steps: all(task.steps) }
}
