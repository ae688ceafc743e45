import type { Fault } from '../fault.ts'
import { ASIDES } from './asides.ts'

/**
 * A small program against the public API, as data: made from a seed, printed when it fails, shortened, and run again.
 * Times are milliseconds.
 */
export interface Program {
  /** Decides what the program leaves open: latencies, jitter, ids, the order of timers that are due together. */
  readonly seed: number
  /** `direct`: the store answers at once. `calm`: over a network. `stormy`: over one that loses, delays and repeats. */
  readonly world: 'direct' | 'calm' | 'stormy'
  /** How many processes there are. */
  readonly processes: number
  readonly ttl: number
  readonly fair: 'turns' | 'strict'
  readonly tasks: readonly TaskPlan[]
  readonly closes: readonly ClosePlan[]
  readonly faults: readonly Fault[]
  /** How many of the store's calls end in a way that no store's may. */
  readonly broken?: number
  /** And some of these end long after their time, or never. */
  readonly mute?: true
  /** And what it says by itself is no better. */
  readonly loud?: true
  /** Nobody listens to what happens to locks. */
  readonly unheard?: true
  /** The store lets nobody listen, or only some time after it was asked. */
  readonly deaf?: true
  /** `none`: the store keeps no line, whoever asks first has it. `untold`: it keeps one, and whoever stands in it has to ask. */
  readonly line?: 'none' | 'untold'
  /** Whoever holds what is taken away is told of it, at the end of a network. */
  readonly revokes?: true
  /** What its Holdfasts were told of clocks and turns. */
  readonly settings?: Settings
}

export interface Settings {
  /** They end with their stores, of which each has its own. */
  readonly closeStore?: true
  readonly clock?: { readonly wall: false }
  readonly turn?: { readonly count?: number; readonly ms?: number }
}

/** Nothing goes wrong on the way to the store, nor in it, and who waits is told. */
export function isCalm(program: Odd): boolean {
  return program.deaf === undefined && isCalmButForThat(program)
}

/** But for who is told: everybody may have to ask. */
export function isCalmButForThat({ world, broken, line }: Odd): boolean {
  return world !== 'stormy' && broken === undefined && line === undefined
}

type Odd = Pick<Program, 'world' | 'broken' | 'line' | 'deaf'>

export interface TaskPlan {
  readonly process: number
  readonly at: number
  readonly steps: readonly Step[]
}

export interface ClosePlan {
  readonly process: number
  readonly at: number
  readonly options: { readonly release?: false; readonly drain?: number; readonly timeout?: number }
  /** By `await using`. */
  readonly dispose?: true
}

export type Step =
  | Section
  | { readonly do: 'sleep'; readonly ms: number }
  /** Goes on by itself, beside and maybe beyond the section that it is in. */
  | { readonly do: 'detach'; readonly steps: readonly Step[] }
  /** The writer's lease that this is inside of. */
  | { readonly do: 'downgrade'; readonly awaited: boolean }
  | { readonly do: 'inspect'; readonly name: string }
  | { readonly do: 'list' }
  /** A call that takes no lock: by its number in `ASIDES`. */
  | { readonly do: 'aside'; readonly which: number }
  /** What an operator does: takes a name from whoever holds it. */
  | { readonly do: 'force'; readonly name: string }

export type Mode = 'mutex' | 'read' | 'write' | 'permits'

/** One lock, as a user makes it. */
export interface LockRef {
  readonly name: string
  readonly mode: Mode
  /** Of a semaphore. */
  readonly capacity?: number
  /** Of a striped lock. */
  readonly key?: string
  readonly reentrant?: true
  readonly renew?: false
  readonly ttl?: number
}

/** Takes a lock, does something, gives it back. */
export interface Section {
  readonly do: 'lock'
  /** More than one are taken through `all`; one may be. */
  readonly all?: true
  readonly locks: readonly LockRef[]
  readonly how: 'run' | 'acquire' | 'try'
  readonly times: number
  readonly wait?: number
  readonly ttl?: number
  readonly permits?: number
  readonly maxHold?: number
  /** Instead of `wait`: for as long as it takes. */
  readonly forever?: true
  /** The caller's signal aborts so long after the call; 0: it has aborted before. */
  readonly abort?: number
  /** And ends all calls of the process that share it. */
  readonly sharedSignal?: true
  /** `wait` and `maxHold` are given to the lock, not to the call. Not with `all`. */
  readonly atLock?: true
  readonly inside: readonly Step[]
  /** `never`: the lease is left to its process's end. `dispose`: by `await using`. Not with `run`. */
  readonly end: 'release' | 'twice' | 'dispose' | 'never'
  /** The function of a `run` throws in the end. */
  readonly throws?: true
}

/** For people. */
export function print(program: Program): string {
  const { seed, world, processes, ttl, fair, tasks, closes, faults } = program
  const odd = oddOf(program)
  return [
    `seed ${seed}: ${world} world, ${processes} processes, ttl ${ttl}, fair: ${fair}${odd}`,
    ...tasks.map(({ process, at, steps }) => `  p${process} at ${at}: ${printAll(steps)}`),
    ...closes.map(
      ({ process, at, options, dispose }) =>
        `  p${process} at ${at}: ${dispose === true ? 'dispose' : 'close'}(${JSON.stringify(options)})`,
    ),
    ...faults.map((fault) => `  ${JSON.stringify(fault)}`),
  ].join('\n')
}

function oddOf({ broken, mute, loud, unheard, deaf, line, revokes, settings }: Program): string {
  const how = `${mute === true ? ', mute' : ''}${loud === true ? ', loud' : ''}`
  return [
    broken === undefined ? '' : `, a store that is broken (${broken}${how})`,
    unheard === true ? ', unheard' : '',
    deaf === true ? ', deaf' : '',
    line === undefined ? '' : `, line: ${line}`,
    revokes === true ? ', revokes' : '',
    settings === undefined ? '' : `, settings ${JSON.stringify(settings)}`,
  ].join('')
}

function printAll(steps: readonly Step[]): string {
  return steps.map(printStep).join('; ')
}

function printStep(step: Step): string {
  switch (step.do) {
    case 'sleep':
      return `sleep ${step.ms}`
    case 'detach':
      return `detach { ${printAll(step.steps)} }`
    case 'downgrade':
      return step.awaited ? 'await downgrade' : 'downgrade'
    case 'inspect':
      return `inspect ${step.name}`
    case 'aside':
      return ASIDES[step.which]?.what ?? ''
    case 'force':
      return `force-release ${step.name}`
    case 'list':
      return 'list'
    case 'lock': {
      const { do: _, all, locks, how, times, inside, end, throws, ...options } = step
      const names = locks.map(printLock).join(', ')
      const target = all === true || locks.length > 1 ? `all(${names})` : names
      const often = times === 1 ? '' : `${times} × `
      const given = Object.keys(options).length === 0 ? '' : JSON.stringify(options)
      return `${often}${target}.${how}(${given}) { ${printAll(inside)} } ${throws === true ? 'throws' : end}`
    }
  }
}

function printLock({ name, mode, ...rest }: LockRef): string {
  const given = Object.keys(rest).length === 0 ? '' : ` ${JSON.stringify(rest)}`
  return `${mode} ${name}${given}`
}
