import fc from 'fast-check'
import { expect, it } from 'vitest'

import type { Store } from 'holdfast'
import type { Voter } from 'holdfast/quorum'
import { memoryNode, memoryStore } from 'holdfast/memory'
import { quorumStore } from 'holdfast/quorum'

const SERVERS = 3
const CLIENTS = 2
const TTL = 1_000

/** A client's address of a server: may lead to any of them, or nowhere, and says so unless it is a silent one. */
class MovingAddress {
  to: Voter | null
  private moved: (reachable: boolean) => void = () => {}

  constructor(to: Voter) {
    this.to = to
  }

  lead(to: Voter | null): void {
    this.to = to
    this.moved(false)
    if (to !== null) this.moved(true)
  }

  store(says: boolean): Store {
    const gone = { kind: 'unknown', cause: new Error('leads nowhere') } as const
    const votes: Voter = {
      vote: (...words) => this.to?.vote(...words) ?? gone,
      confirm: (...words) => this.to?.confirm(...words) ?? gone,
      extend: (requests, timeout) => this.to?.extend(requests, timeout) ?? requests.map(() => gone),
      release: (...words) => this.to?.release(...words) ?? gone,
      withdraw: (...words) => this.to?.withdraw(...words) ?? gone,
      watch: (...words) => this.to?.watch(...words) ?? gone,
      inspect: (...words) => this.to?.inspect(...words) ?? gone,
      names: (...words) => this.to?.names(...words) ?? gone,
      identify: (...words) => this.to?.identify(...words) ?? gone,
      ...(says ? { onMove: (listener: (reachable: boolean) => void) => void (this.moved = listener) } : {}),
    }
    return Object.assign(memoryStore(), { votes })
  }
}

const aStep = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('claim' as const), client: fc.nat(CLIENTS - 1) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('renew' as const), client: fc.nat(CLIENTS - 1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('release' as const), client: fc.nat(CLIENTS - 1) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(100, 400, 900) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('lead' as const),
      client: fc.nat(CLIENTS - 1),
      address: fc.nat(SERVERS - 1),
      to: fc.option(fc.nat(SERVERS - 1)),
    }),
  },
)
type Step = typeof aStep extends fc.Arbitrary<infer S> ? S : never

/** Says what went wrong, if anything did. */
async function run(steps: readonly Step[], says: boolean): Promise<string | undefined> {
  let ms = 1_000_000
  const now = () => ({ ms, micros: ms * 1_000 })
  const servers = Array.from({ length: SERVERS }, () => memoryNode({ now }).votes)
  const clock = { now: () => ms, setTimer: () => () => {} }
  const clients = Array.from({ length: CLIENTS }, () => {
    const addresses = servers.map((server) => new MovingAddress(server))
    const store = quorumStore(
      addresses.map((address) => address.store(says)),
      { setUp: 'now', clock },
    )
    return { addresses, store, id: '', endsAt: 0, claims: 0 }
  })
  const tokens: bigint[] = []
  for (const [index, { store }] of clients.entries()) {
    // Each has met them once.
    const met = { name: `met ${index}`, id: `m${index}.1`, ...TERMS }
    await store.claim(met, 100)
    await store.release(met, undefined, 100)
  }
  for (const step of steps) {
    if (step.kind === 'pass') {
      ms += step.ms
      continue
    }
    const client = clients[step.client] as (typeof clients)[0]
    const { addresses, store } = client
    const holds = client.endsAt > ms
    if (step.kind === 'lead') {
      addresses[step.address]?.lead(step.to === null ? null : (servers[step.to] as Voter))
    } else if (step.kind === 'claim' && !holds) {
      client.id = `c${step.client}.${++client.claims}`
      const answer = await store.claim({ name: 'x', id: client.id, ...TERMS }, 100)
      if (answer.kind !== 'held') continue
      if (tokens.some((token) => token >= answer.token)) return 'a token that is not larger'
      tokens.push(answer.token)
      client.endsAt = ms + TTL
    } else if (step.kind === 'renew' && holds) {
      const [answer] = await store.renew(
        [{ name: 'x', id: client.id, ttl: TTL, patience: 1, tokens: 0 }],
        100,
      )
      if (answer?.kind === 'renewed') client.endsAt = ms + TTL
      if (answer?.kind === 'lost') client.endsAt = 0
    } else if (step.kind === 'release' && holds) {
      client.endsAt = 0
      await store.release({ name: 'x', id: client.id }, undefined, 100)
    }
    if (clients.filter(({ endsAt }) => endsAt > ms).length > 1) return 'two holders'
  }
  return undefined
}

const TERMS = {
  ttl: TTL,
  weight: 1,
  capacity: 1,
  patience: 500,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
} as const

const schedules = fc.array(aStep, { minLength: 5, maxLength: 40 })

it('has one holder, and tokens that grow, wherever the addresses of the servers lead', async () => {
  const { counterexample } = await fc.check(
    fc.asyncProperty(schedules, async (steps) => (await run(steps, true)) === undefined),
    { numRuns: 400 },
  )
  expect(counterexample).toBeNull()
})

it('would have two, were servers asked only once which ones they are', async () => {
  const { counterexample } = await fc.check(
    fc.asyncProperty(schedules, async (steps) => (await run(steps, false)) === undefined),
    { numRuns: 3_000, seed: 1 },
  )
  expect(counterexample).not.toBeNull()
})
