import { Random } from '../../../testkit/random.ts'
import { faultsFrom } from '../faults.ts'
import { LOOKS_OFTEN } from './asides.ts'
import { odder } from './oddities.ts'
import type { ClosePlan, LockRef, Program, Section, Step, TaskPlan } from './program.ts'

/** What one name is used as: all users of a name agree on it. */
type NameUse =
  | { readonly as: 'mutex' | 'read-write'; readonly name: string }
  | { readonly as: 'semaphore'; readonly name: string; readonly capacity: number }
  | { readonly as: 'striped'; readonly name: string }

const KEYS: readonly [string, ...string[]] = ['ann', 'bob', 'cyd', 'dan']
export const STRIPES = 2
const FAULTY_UNTIL = 700

export interface GenerateOptions {
  /** Of the store: which kinds of locks there are. */
  readonly shared: boolean
  readonly permits: boolean
  readonly worlds: readonly [Program['world'], ...Program['world'][]]
  /** Default, and of single locks and calls. */
  readonly ttls: readonly [number, ...number[]]
  readonly otherTtls: readonly [number, ...number[]]
  /** Whether locks are taken from their holders, too. */
  readonly force: boolean
}

const EVERYTHING: GenerateOptions = {
  shared: true,
  permits: true,
  worlds: ['direct', 'calm', 'calm', 'stormy'],
  ttls: [300, 600, 1500],
  otherTtls: [200, 250, 450, 700, 900],
  force: true,
}

/** The program of a seed: anything that the public API allows, mixed so that features meet. */
export function programFrom(seed: number, options: GenerateOptions = EVERYTHING): Program {
  return new Generator(seed, options).program()
}

export interface GuestOptions extends Pick<GenerateOptions, 'shared' | 'permits'> {
  readonly processes: number
  readonly ttl: number
  /** The longest that the store takes. */
  readonly maxTtl: number
  /** Until when tasks may begin, and processes be closed. */
  readonly until: number
  /** Nothing is closed before its time: who waits there is measured. */
  readonly calm: boolean
}

/** What the programs do, for processes of a scenario: a few tasks beside those that are always there. */
export function guestsFrom(seed: number, options: GuestOptions): Pick<Program, 'tasks' | 'closes'> {
  const { ttl, maxTtl, shared, permits } = options
  const otherTtls = [ttl, Math.min(maxTtl, ttl + 100), Math.min(maxTtl, Math.round(ttl * 1.5))] as const
  const rest = { worlds: ['stormy'], ttls: [ttl], otherTtls, force: false } as const
  return new Generator(seed, { shared, permits, ...rest }).guests(options)
}

class Generator {
  private readonly seed: number
  private readonly options: GenerateOptions
  private readonly random: Random
  private readonly names: readonly NameUse[]
  private readonly ttl: number
  /** Some programs have many readers, or long sections: not everything is equally likely in all of them. */
  private readonly taste: Readonly<Record<'readers' | 'longest' | 'oddity' | 'aborts', number>>

  constructor(seed: number, options: GenerateOptions) {
    this.seed = seed
    this.options = options
    this.random = new Random(seed)
    this.ttl = this.pick(options.ttls)
    this.taste = {
      readers: this.pick([0.4, 0.8]),
      longest: this.pick([10, 50, 50, 150]),
      oddity: this.pick([0.02, 0.1, 0.3, 0.6]),
      aborts: this.pick([0.02, 0.1, 0.4]),
    }
    const count = this.chance(0.7) ? 1 : 2
    this.names = Array.from({ length: count }, (_, index) => this.nameUse(`n${index}`))
  }

  program(): Program {
    const { seed, ttl, random } = this
    const world = this.pick(this.options.worlds)
    const processes = 1 + random.below(3)
    const tasks = Array.from({ length: 2 + random.below(6) }, () => this.task(processes))
    if (this.options.shared && this.chance(0.1)) tasks.push(...this.relay(processes))
    const closes = this.chance(0.4) ? [this.close(processes)] : []
    const target = {
      processes,
      nodes: 1,
      names: [],
      ttl,
      until: FAULTY_UNTIL,
      kinds: ['delay', 'loss', 'duplicate', 'echo'] as const,
    }
    const faults = world === 'stormy' ? faultsFrom(random, target) : []
    const fair = this.chance(0.5) ? 'turns' : 'strict'
    const plain = { seed, world, processes, ttl, fair, tasks, closes, faults } as const
    return odder(plain, this.options.permits)
  }

  guests({ processes, until, calm }: GuestOptions): Pick<Program, 'tasks' | 'closes'> {
    const { random } = this
    const tasks = Array.from({ length: 2 + random.below(4) }, () => this.task(processes))
    if (this.options.shared && this.chance(0.1)) tasks.push(...this.relay(processes))
    const later = tasks.map((task) => ({ ...task, at: task.at + random.below(until) }))
    const closes = !calm && this.chance(0.3) ? [this.close(processes)] : []
    return { tasks: later, closes: closes.map((close) => ({ ...close, at: random.below(until) })) }
  }

  private nameUse(name: string): NameUse {
    const { shared, permits } = this.options
    const roll = this.random.next()
    if (roll < 0.4 && shared) return { as: 'read-write', name }
    if (roll < 0.6 && permits) return { as: 'semaphore', name, capacity: 1 + this.random.below(4) }
    return { as: roll < 0.75 ? 'striped' : 'mutex', name }
  }

  private task(processes: number): TaskPlan {
    const steps = Array.from({ length: 1 + this.random.below(3) }, () => this.step())
    const at = this.chance(0.5) ? 0 : this.random.below(this.pick([3, 30, 120]))
    return { process: this.random.below(processes), at, steps }
  }

  /** Readers of one process that overlap without a pause, and a writer that comes into it. */
  private relay(processes: number): TaskPlan[] {
    const { random } = this
    const name = 'relay'
    const process = random.below(processes)
    const common = { do: 'lock', how: 'run', end: 'release' } as const
    const read = (): Section => ({
      ...common,
      locks: [{ name, mode: 'read' }],
      times: 3 + random.below(4),
      wait: this.wait(),
      inside: [{ do: 'sleep', ms: 10 + random.below(30) }],
    })
    const write: Section = {
      ...common,
      locks: [{ name, mode: 'write' }],
      times: 1,
      wait: this.wait(),
      inside: [],
    }
    const readers = Array.from({ length: 2 + random.below(2) }, () => ({
      process,
      at: random.below(20),
      steps: [read()],
    }))
    return [...readers, { process: random.below(processes), at: random.below(60), steps: [write] }]
  }

  private close(processes: number): ClosePlan {
    const process = this.random.below(processes)
    const at = this.random.below(this.pick([20, 150, 500]))
    const options = this.pick<ClosePlan['options']>([
      {},
      { drain: 0 },
      { drain: 0 },
      { drain: 30, timeout: 200 },
      { drain: 400 },
      { release: false },
    ])
    return { process, at, options }
  }

  private step(): Step {
    const roll = this.random.next()
    if (roll < 0.04) return { do: 'inspect', name: this.nameOf(this.some(this.names)) }
    if (roll < 0.06) return { do: 'list' }
    if (roll < 0.075 && this.options.force) return { do: 'force', name: this.nameOf(this.some(this.names)) }
    if (roll < 0.1) return this.aside()
    if (roll < 0.16) return { do: 'sleep', ms: this.random.below(40) }
    return this.section(0)
  }

  private aside(): Step {
    return { do: 'aside', which: LOOKS_OFTEN[this.random.below(LOOKS_OFTEN.length)] ?? 0 }
  }

  private section(depth: number): Section {
    const { random } = this
    const all = this.chance(0.12)
    const locks = this.locks(all)
    const [first] = locks
    const how = this.pick<Section['how']>(['run', 'run', 'acquire', 'try'])
    const permits = first?.capacity === undefined ? 0 : 1 + random.below(first.capacity)
    return {
      do: 'lock',
      ...(all ? { all } : {}),
      locks,
      how,
      times: this.chance(first?.mode === 'read' ? 0.5 : 0.2) ? 1 + random.below(6) : 1,
      ...(how === 'try' ? {} : { wait: this.wait() }),
      ...this.maybe('ttl', () => this.pick(this.options.otherTtls)),
      ...(permits > 1 && !all ? { permits } : {}),
      ...this.maybe('maxHold', () => 1 + random.below(100)),
      ...(this.chance(this.taste.aborts) ? { abort: this.abort(how) } : {}),
      inside: this.inside(depth, how, first),
      end: how === 'run' ? 'release' : this.end(),
      ...(how === 'run' && this.chance(0.05) ? { throws: true as const } : {}),
    }
  }

  private inside(depth: number, how: Section['how'], lock: LockRef | undefined): Step[] {
    const steps: Step[] = []
    const hold = (): Step => ({ do: 'sleep', ms: this.time() })
    if (this.chance(0.8)) steps.push(hold())
    if (this.chance(0.05)) steps.push(this.aside())
    if (depth < 2 && this.chance(how === 'run' ? 0.3 : 0.1)) {
      const nested = this.section(depth + 1)
      steps.push(this.chance(0.4) ? { do: 'detach', steps: [nested] } : nested)
      if (this.chance(0.5)) steps.push(hold())
    }
    if (lock?.mode === 'write' && this.chance(0.2)) {
      steps.push({ do: 'downgrade', awaited: this.chance(0.7) }, hold())
    }
    return steps
  }

  /** Mostly short; now and then longer than a lease. */
  private time(): number {
    const { random, taste, ttl } = this
    return random.next() < 0.03 ? random.below(2 * ttl) : random.below(taste.longest)
  }

  private wait(): number {
    const roll = this.random.next()
    if (roll < 0.08) return 0
    return roll < 0.4 ? 1 + this.random.below(80) : 4000
  }

  private end(): Section['end'] {
    const roll = this.random.next()
    return roll < 0.8 ? 'release' : roll < 0.9 ? 'twice' : roll < 0.97 ? 'dispose' : 'never'
  }

  /** A try is over after one answer; to hit it one must be quick. */
  private abort(how: Section['how']): number {
    return how === 'try' || this.chance(0.5) ? this.random.next() * 2 : this.random.below(60)
  }

  private locks(all: boolean): readonly LockRef[] {
    const one = this.lock(this.some(this.names))
    if (!all) return [one]
    const others = this.names.map((use) => this.lock(use)).filter(({ mode }) => mode !== 'permits')
    return [one, ...others.filter(({ name, key }) => name !== one.name || key !== one.key)]
  }

  private lock(use: NameUse): LockRef {
    const { name } = use
    const common = {
      ...(this.chance(0.5 * this.taste.oddity) ? { renew: false as const } : {}),
      ...this.maybe('ttl', () => this.pick(this.options.otherTtls)),
    }
    const reentrant = this.chance(0.3) ? { reentrant: true as const } : {}
    switch (use.as) {
      case 'mutex':
        return { name, mode: 'mutex', ...reentrant, ...common }
      case 'read-write':
        return { name, mode: this.chance(this.taste.readers) ? 'read' : 'write', ...reentrant, ...common }
      case 'semaphore':
        return { name, mode: 'permits', capacity: use.capacity, ...common }
      case 'striped':
        return { name, mode: 'mutex', key: this.pick(KEYS), ...common }
    }
  }

  private nameOf(use: NameUse): string {
    return use.as === 'striped' ? `${use.name}#0` : use.name
  }

  private maybe<K extends string>(key: K, value: () => number): { readonly [P in K]?: number } {
    return (this.chance(this.taste.oddity) ? { [key]: value() } : {}) as { readonly [P in K]?: number }
  }

  private chance(likely: number): boolean {
    return this.random.next() < likely
  }

  private pick<T>(choices: readonly [T, ...T[]]): T {
    return this.random.pick(choices)
  }

  private some<T>(list: readonly T[]): T {
    return list[this.random.below(list.length)] as T
  }
}
