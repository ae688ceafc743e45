import { checkAbortLatency } from '../../testkit/checkers/abort-latency.ts'
import { checkExclusivity } from '../../testkit/checkers/exclusivity.ts'
import { checkFencedResource } from '../../testkit/checkers/fenced-resource.ts'
import { checkFifo } from '../../testkit/checkers/fifo.ts'
import { checkLeftovers } from '../../testkit/checkers/leftovers.ts'
import { checkLinearizability } from '../../testkit/checkers/linearizability.ts'
import { checkHandOver, checkLiveness } from '../../testkit/checkers/liveness.ts'
import { checkLostUpdates } from '../../testkit/checkers/lost-update.ts'
import { readWriteLock, reentrantMutex, semaphore } from '../../testkit/checkers/models.ts'
import type { Model } from '../../testkit/checkers/models.ts'
import { checkNoise } from '../../testkit/checkers/noise.ts'
import type { Noise } from '../../testkit/checkers/noise.ts'
import { operationsOf } from '../../testkit/checkers/operation.ts'
import { checkTokenOrder } from '../../testkit/checkers/token-order.ts'
import type { Violation } from '../../testkit/checkers/violation.ts'
import { holdsOf } from '../../testkit/holds.ts'
import type { Hold } from '../../testkit/holds.ts'
import type { Outcome } from '../record.ts'
import type { FaultKind } from './fault.ts'
import type { NameKind } from './names.ts'
import type { EventRecorder } from './noise.ts'
import type { Mode } from './programs/program.ts'
import { examineCalm } from './programs/checks/index.ts'
import { BOUND_MS } from './bounds.ts'
import type { Traces } from './traces.ts'
import type { Check } from './types.ts'
import { listenersOn } from './world.ts'

/** A check that is not for this world has none. */
export interface Finding {
  readonly check: Check
  readonly seen: Outcome
  readonly violations: readonly Violation[]
}

/** How many may go before a waiter, when nothing goes wrong: those for whom their process had asked before. */
const MAY_GO_FIRST = { strict: 12, turns: 14 }
/** After these something is left that nobody can clean up but time: the dead, and copies of requests that come late. */
const LEAVE_SOMETHING: ReadonlySet<FaultKind> = new Set([
  'kill',
  'duplicate',
  'restart',
  'failover',
  'node-clock-jump',
  'evict',
])
/** A free lock is in the hands of the next waiter after a few messages. */
const HAND_OVER_MS = 20
/** Enough for a run of this size by a factor of a hundred. */
const SEARCH_LIMIT = 200_000

const BARREN: Violation = { rule: 'liveness', message: 'nobody was ever given a lock' }

/** What a call may end with that was told to end, and with something in its way. */
const ASKED_FOR: ReadonlySet<string> = new Set(['LOCK_ABORTED'])
const IN_TROUBLE: ReadonlySet<string> = new Set([
  ...ASKED_FOR,
  'busy',
  'LOCK_TIMEOUT',
  'LOCK_LOST',
  'STORE_UNAVAILABLE',
  'QUORUM_UNAVAILABLE',
  'CLOSED',
])

const MODELS: Readonly<Record<NameKind, Model<unknown>>> = {
  mutex: reentrantMutex as Model<unknown>,
  reentrant: reentrantMutex as Model<unknown>,
  'read-write': readWriteLock as Model<unknown>,
  semaphore: semaphore as Model<unknown>,
}

const KINDS: Readonly<Record<Mode, NameKind>> = {
  mutex: 'mutex',
  read: 'read-write',
  write: 'read-write',
  permits: 'semaphore',
}

/** Every check of a run. */
export function examine(traces: Traces, ear: EventRecorder): readonly Finding[] {
  const { world, resource, names, scenario, alive } = traces
  const calm = scenario.faults.length === 0
  const diaries = world.processes.map(({ diary }) => diary)
  const events = diaries.flatMap((diary) => diary.events)
  const holds = holdsOf(events)
  const waits = alive.flatMap(({ diary }) => diary.waits)
  const losses = diaries.flatMap((diary) => diary.losses)
  const bounds = { healedAt: traces.healedAt, bound: BOUND_MS, until: traces.endedAt }
  const { queue, wakeups } = world.capabilities()
  const pushed = queue && wakeups === 'push'
  // Of those that are always there: who takes several locks has some of them before it says so.
  const steady = holds.filter(({ name }) => names.includes(name as NameKind))
  const late = calm && pushed ? checkHandOver(steady, { bound: HAND_OVER_MS }) : []
  const updates = (which: 'fenced' | 'plain'): Violation[] =>
    names.flatMap((name) => {
      const of = resource.updatesOf(which, name)
      return checkLostUpdates(of.updates, of.value)
    })
  const wrote = (which: 'fenced' | 'plain'): boolean =>
    names.some((name) => resource.updatesOf(which, name).updates.length > 0)
  const inLine = steady.some(({ queued }) => queued !== undefined)
  const given = holds.length > 0
  const lies = diaries.flatMap((diary) =>
    diary.lies.map((message) => ({ rule: 'abort-latency' as const, message })),
  )
  const aborts = [...checkAbortLatency(losses, { standstills: standstillsOf(traces) }), ...lies]
  return [
    finding('exclusivity', checkExclusivity(holds), given),
    finding('token order', checkTokenOrder(holds), given),
    finding('fenced resource', checkFencedResource(resource.decisions), resource.decisions.length > 0),
    finding('lost update', updates('fenced'), wrote('fenced')),
    finding('unfenced resource', updates('plain'), wrote('plain')),
    given ? linearizability(traces) : finding('linearizability', [], false),
    finding('liveness', [...checkLiveness(waits, bounds), ...late, ...(given ? [] : [BARREN])]),
    // Order is for worlds that are calm, and there no lease is lost: that one is, is told of among the calls.
    ...(calm && queue ? [finding('bypass', overtaken(traces, steady), inLine)] : []),
    finding('leftovers', leftovers(traces)),
    finding('noise', checkNoise(noiseOf(traces, ear))),
    ...(calm && aborts.length === 0 ? [] : [finding('abort latency', aborts, losses.length > 0)]),
    ...messages(traces),
    finding('calls', [...callsOf(traces, calm && pushed), ...failuresOf(traces, calm)], given),
  ]
}

/** Nobody's calls fail where nothing is in the way, unless they are told to end; elsewhere they say that something is. */
function failuresOf({ world, names }: Traces, calm: boolean): Violation[] {
  return world.processes.flatMap(({ diary }) =>
    diary.timeline.flatMap(({ kind, client, name, detail = '' }) => {
      if (!names.includes(name as NameKind)) return []
      const wrong =
        (kind === 'failed' && !(calm ? ASKED_FOR : IN_TROUBLE).has(detail)) || (kind === 'lost' && calm)
      const what = kind === 'lost' ? 'lost a lease' : `was told ${detail}`
      return wrong ? [{ rule: 'noise' as const, message: `${client} ${what} on "${name}"` }] : []
    }),
  )
}

/** What the random program's calls ended with; where nothing is in the way and waiters are told, also when. */
function callsOf({ calls }: Traces, measured: boolean): Violation[] {
  const found = [...calls.findings, ...(measured ? examineCalm(calls) : [])]
  return found.map(({ check, message }) => ({ rule: 'noise', message: `${check}: ${message}` }))
}

/** A grant is told after it was made. */
function messages({ backend }: Traces): Finding[] {
  const messages = backend.messages?.()
  if (messages === undefined) return []
  const wrong = messages.wrong.map((message): Violation => ({ rule: 'noise', message }))
  return [finding('messages', wrong, messages.told > 0)]
}

function linearizability({ world, names, calls }: Traces): Finding {
  const diaries = world.processes.map(({ diary }) => diary)
  const operations = diaries.flatMap(({ events, reentries }) => [...operationsOf(events), ...reentries])
  const kinds = new Map<string, NameKind>(names.map((kind) => [kind, kind]))
  for (const { wants } of calls.calls) for (const { name, mode } of wants) kinds.set(name, KINDS[mode])
  const results = [...kinds].map(([name, kind]) => {
    const own = operations.filter((operation) => operation.name === name)
    return checkLinearizability(own, MODELS[kind], { limit: SEARCH_LIMIT })
  })
  const violations = results.flatMap((result) => result.violations)
  const undecided = results.some(({ verdict }) => verdict === 'unknown')
  return {
    check: 'linearizability',
    seen: violations.length > 0 ? 'broke' : undecided ? 'unknown' : 'held',
    violations,
  }
}

/** In the end nothing at all; and right after the last task, unless something happened that only time can heal. */
function leftovers({ names, backend, remains, plan, world, calls }: Traces): Violation[] {
  const early = !plan.some(({ kind }) => LEAVE_SOMETHING.has(kind)) && world.capabilities().queue
  const asked = calls.calls.flatMap(({ wants }) => wants.map(({ name }) => name))
  const late = [...new Set([...names, ...asked])].map((name) => backend.inspect(name))
  return checkLeftovers({ names: early ? [...remains, ...late] : late })
}

/** By the time of the grants, not by their tokens: readers hold some in reserve, so that their order says nothing. */
function overtaken({ fair }: Traces, holds: readonly Hold[]): readonly Violation[] {
  const inOrder = holds.map((hold) => ({ ...hold, token: hold.from }))
  return checkFifo(inOrder, MAY_GO_FIRST[fair]).violations
}

function noiseOf({ alive, crashes, stray }: Traces, { rejections, warnings }: EventRecorder): Noise {
  return {
    rejections: [...rejections, ...crashes],
    warnings,
    listeners: alive.reduce((sum, { shutdown }) => sum + listenersOn(shutdown), 0),
    timers: alive.reduce((sum, { env }) => sum + env.timers.foreground, 0),
    requests: stray,
  }
}

/** A stall is a standstill of everybody: true time jumps, and nothing runs meanwhile. */
function standstillsOf({ world, plan }: Traces): { process: string; from: number; to: number }[] {
  const stopped = plan.flatMap((fault) => {
    if (fault.kind !== 'pause' && fault.kind !== 'suspend') return []
    return [{ process: `p${fault.process}`, from: fault.at, to: fault.until }]
  })
  const stalled = world.standstills.flatMap(({ from, to }) =>
    world.processes.map(({ name }) => ({ process: name, from, to })),
  )
  return [...stopped, ...stalled]
}

/** `looked`: there was something to look at. */
function finding(check: Check, violations: readonly Violation[], looked: boolean = true): Finding {
  return { check, seen: violations.length > 0 ? 'broke' : looked ? 'held' : 'not run', violations }
}
