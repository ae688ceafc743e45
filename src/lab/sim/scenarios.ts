import type { FaultKind } from './fault.ts'
import type { Check, Expected, Scenario, StoreKind } from './types.ts'

const CLIENT_FAULTS: readonly FaultKind[] = ['pause', 'suspend', 'stall', 'kill']
const NETWORK_FAULTS: readonly FaultKind[] = ['delay', 'loss', 'duplicate']
const CLOCK_FAULTS: readonly FaultKind[] = ['clock-jump', 'clock-rate', 'node-clock-rate']

const HOLDS: Readonly<Record<Check, Expected>> = {
  exclusivity: 'holds',
  'token order': 'holds',
  'fenced resource': 'holds',
  'lost update': 'holds',
  // A write that left in time may arrive late, whatever the store does.
  'unfenced resource': 'may break',
  linearizability: 'holds',
  liveness: 'holds',
  bypass: 'holds',
  leftovers: 'holds',
  noise: 'holds',
  'abort latency': 'holds',
  messages: 'holds',
  calls: 'holds',
}

interface Given {
  readonly title: string
  readonly settings?: Scenario['settings']
  readonly faults: readonly FaultKind[]
  readonly harmless?: readonly FaultKind[]
  /** What may go wrong, and must be seen to. */
  readonly breaks?: readonly Check[]
  readonly mayBreak?: readonly Check[]
  readonly ttl?: number
  readonly patience?: number
}

function scenario(store: StoreKind, fault: string, given: Given): Scenario {
  const { title, settings = {}, faults, harmless = [], breaks = [], mayBreak = [], ttl = 2000 } = given
  const { patience = 900 } = given
  const expected = { ...HOLDS }
  for (const check of [...breaks, ...mayBreak]) expected[check] = 'may break'
  // Who does not know yet that it lost the lock goes on to hand it to its own tasks, with tokens from before.
  if (expected.exclusivity !== 'holds') expected['token order'] = 'may break'
  return {
    id: `${store}/${fault}`,
    title,
    store,
    settings,
    faults,
    harmless,
    expected,
    mustBreak: breaks,
    ttl,
    patience,
  }
}

const everywhere = (store: StoreKind, what: string, ttl?: number): Scenario[] => {
  const rest = ttl === undefined ? {} : { ttl }
  return [
    scenario(store, 'calm', { title: `${what}: nothing happens`, faults: [], ...rest }),
    scenario(store, 'network', {
      title: `${what}: messages late, lost and twice`,
      faults: NETWORK_FAULTS,
      ...rest,
    }),
    scenario(store, 'partition', {
      title: `${what}: nothing passes`,
      faults: ['partition', 'delay'],
      ...rest,
    }),
    scenario(store, 'processes', {
      title: `${what}: processes stop, sleep and die`,
      faults: CLIENT_FAULTS,
      ...rest,
    }),
    scenario(store, 'clocks', { title: `${what}: clients' clocks`, faults: CLOCK_FAULTS, ...rest }),
  ]
}

const CLAIM_QUEUE = [
  ...everywhere('claim-queue', 'Claim queue'),
  scenario('claim-queue', 'rates', {
    title: 'Claim queue: clocks differ in rate while leases run out',
    faults: ['clock-rate', 'clock-rate', 'node-clock-rate', 'partition', 'partition'],
    ttl: 3000,
    // Waiters that ask often find a lock that has just run out.
    patience: 240,
  }),
  scenario('claim-queue', 'restart', {
    title: 'Claim queue: the server restarts and forgets nothing',
    faults: ['restart', 'loss'],
    settings: { memory: 'kept' },
  }),
  scenario('claim-queue', 'amnesia', {
    title: 'Claim queue: the server restarts without its memory',
    faults: ['restart'],
    breaks: ['exclusivity', 'linearizability'],
  }),
  scenario('claim-queue', 'everything', {
    title: 'Claim queue: all of it at once',
    faults: [...NETWORK_FAULTS, ...CLIENT_FAULTS, ...CLOCK_FAULTS, 'partition', 'node-clock-jump'],
  }),
]

const REDIS = [
  ...everywhere('redis', 'Redis'),
  scenario('redis', 'restart-always', {
    title: 'Redis: power lost, written to disk before every answer',
    faults: ['restart', 'loss'],
    settings: { durability: 'always' },
  }),
  scenario('redis', 'restart-every-second', {
    title: 'Redis: power lost, written to disk every second',
    faults: ['restart'],
    settings: { durability: 'every second' },
    breaks: ['exclusivity', 'linearizability'],
  }),
  scenario('redis', 'restart-none', {
    title: 'Redis: restarted without persistence',
    faults: ['restart'],
    settings: { durability: 'none' },
    breaks: ['exclusivity', 'linearizability'],
  }),
  scenario('redis', 'failover', {
    title: 'Redis: failover to a replica that is behind',
    faults: ['failover', 'delay'],
    breaks: ['exclusivity', 'linearizability'],
  }),
  scenario('redis', 'failover-durable', {
    title: 'Redis: the same, with tokens that are only counted',
    faults: ['failover'],
    settings: { fencing: 'durable' },
    breaks: ['exclusivity', 'linearizability', 'token order'],
    mayBreak: ['lost update'],
  }),
  scenario('redis', 'planned-failover', {
    title: 'Redis: planned failover, listeners stay at the old primary',
    faults: ['hand-over', 'delay', 'echo'],
  }),
  scenario('redis', 'early-messages', {
    title: 'Redis: the same, and grants are told before they are made',
    faults: ['hand-over', 'hand-over', 'delay'],
    settings: { tells: 'early' },
    breaks: ['messages'],
  }),
  scenario('redis', 'server-clock', {
    title: "Redis: somebody sets the server's clock",
    faults: ['node-clock-jump'],
    breaks: ['exclusivity', 'linearizability'],
  }),
]

const SESSION = [
  ...everywhere('session', 'Sessions'),
  scenario('session', 'restart', {
    title: 'Sessions: the servers restart',
    faults: ['restart', 'loss', 'partition'],
  }),
  scenario('session', 'server-clock', {
    title: "Sessions: somebody sets the servers' clocks",
    faults: ['node-clock-jump', 'pause'],
    harmless: ['node-clock-jump'],
  }),
]

const CAS_TTL = 3000
const CAS = [
  ...everywhere('cas', 'CAS', CAS_TTL),
  scenario('cas', 'restart', {
    title: 'CAS: the server restarts empty',
    faults: ['restart', 'delay'],
    breaks: ['exclusivity', 'linearizability'],
    mayBreak: ['lost update'],
    ttl: CAS_TTL,
  }),
  scenario('cas', 'eviction', {
    title: 'CAS: the server makes room',
    faults: ['evict'],
    breaks: ['exclusivity', 'linearizability'],
    ttl: CAS_TTL,
  }),
]

const QUORUM = [
  ...everywhere('quorum', 'Quorum of 3'),
  scenario('quorum', 'restart', {
    title: 'Quorum of 3: nodes restart with everything or with nothing',
    faults: ['restart', 'delay'],
  }),
  scenario('quorum', 'amnesia', {
    title: 'Quorum of 3: nodes without memory vote at once',
    faults: ['restart', 'partition'],
    settings: { setUp: 'now' },
    breaks: ['exclusivity', 'linearizability'],
    // Tokens begin at whole seconds, so that a node that does not wait may give the same ones again.
    mayBreak: ['lost update'],
  }),
  scenario('quorum', 'everything', {
    title: 'Quorum of 5: all of it at once',
    faults: [...NETWORK_FAULTS, ...CLIENT_FAULTS, 'partition', 'partition', 'restart'],
    settings: { nodes: 5 },
  }),
]

export const scenarios: readonly Scenario[] = [...CLAIM_QUEUE, ...REDIS, ...SESSION, ...CAS, ...QUORUM]

export function scenarioOf(which: string | Scenario): Scenario {
  if (typeof which !== 'string') return which
  const found = scenarios.find(({ id }) => id === which)
  if (found === undefined) throw new Error(`there is no scenario "${which}"`)
  return found
}
