import { deepEqual, ok } from 'node:assert/strict'

import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, redis } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { emptyQueue, step, view } from '../../../src/core/claim-queue.ts'
import type { Instant, Notice, QueueCommand, QueueState } from '../../../src/core/claim-queue.ts'
import { ALL } from '../../../src/core/contract.ts'
import type {
  ClaimInfo,
  ClaimRef,
  ClaimRequest,
  NameInfo,
  RenewRequest,
  StoreEvent,
} from '../../../src/core/contract.ts'
import { capabilitiesOf } from '../../../src/stores/redis/capabilities.ts'
import { RedisStore } from '../../../src/stores/redis/store.ts'
import { readMessage } from '../../../src/stores/redis/wire.ts'
import { Ear } from './ear.ts'
import { VirtualTimeLink } from './virtual-time.ts'

const SESSIONS = ['ann', 'bob', 'eve']
const TIMEOUT = 5_000
/** Each name is mostly used with one capacity, and now and then with another. */
const NAMES = [
  { name: 'mutex', capacities: [1, 1, 1, 1, 1, 2] },
  { name: 'sema{phore}', capacities: [3, 3, 3, 3, 3, 1] },
  { name: 'read write %', capacities: [ALL, ALL, ALL, ALL, ALL, 3] },
]

type Move =
  /** Sent in one moment: they travel together. */
  | { readonly kind: 'burst'; readonly commands: readonly QueueCommand[] }
  /** As upkeep sends them: in one request, each claim once. */
  | { readonly kind: 'upkeep'; readonly renewals: readonly RenewRequest[] }
  | { readonly kind: 'pass'; readonly micros: number }
  | { readonly kind: 'listen'; readonly session: string; readonly on: boolean }

/** Few, so that they meet again, and some that others begin with. */
const anId = fc
  .tuple(fc.constantFrom(...SESSIONS), fc.constantFrom(0, 1, 12, 123))
  .map(([session, number]) => `${session}.${number}`)
const aRef = fc.record({ name: fc.constantFrom(...NAMES.map(({ name }) => name)), id: anId })
const ttl = fc.constantFrom(100, 700, 3_000)
const patience = fc.constantFrom(50, 400, 5_000)

const aClaim: fc.Arbitrary<ClaimRequest> = fc
  .record({
    of: fc
      .constantFrom(...NAMES)
      .chain(({ name, capacities }) =>
        fc.record({ name: fc.constant(name), capacity: fc.constantFrom(...capacities) }),
      ),
    id: anId,
    wanted: fc.constantFrom(1, 1, 2, ALL, ALL),
    ttl,
    patience,
    tokens: fc.constantFrom(1, 1, 8, 5_000),
    whenBusy: fc.constantFrom('queue', 'queue', 'queue', 'try'),
  })
  .map(({ of: { name, capacity }, id, wanted, whenBusy, ...rest }) => ({
    ...rest,
    name,
    capacity,
    id,
    weight: Math.min(wanted, capacity),
    whenBusy,
    owner: `host of ${id}, process 7`,
  }))

const aRenewal = fc
  .record({ of: aRef, tokens: fc.constantFrom(0, 0, 0, 4), ttl, patience })
  .map(({ of, ...rest }) => ({ ...of, ...rest }))

const aCommand: fc.Arbitrary<QueueCommand> = fc.oneof(
  { weight: 8, arbitrary: aClaim.map((request): QueueCommand => ({ kind: 'claim', request })) },
  { weight: 5, arbitrary: aRenewal.map((request): QueueCommand => ({ kind: 'renew', request })) },
  { weight: 5, arbitrary: aRef.map((claim): QueueCommand => ({ kind: 'release', claim })) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(anId, aClaim)
      .map(([id, next]): QueueCommand => ({ kind: 'release', claim: { name: next.name, id }, next })),
  },
  { weight: 2, arbitrary: aRef.map((claim): QueueCommand => ({ kind: 'withdraw', claim })) },
  { weight: 3, arbitrary: aRef.map((claim): QueueCommand => ({ kind: 'downgrade', claim })) },
)

const aMove: fc.Arbitrary<Move> = fc.oneof(
  { weight: 20, arbitrary: aCommand.map((command): Move => ({ kind: 'burst', commands: [command] })) },
  {
    weight: 5,
    arbitrary: fc
      .array(aCommand, { minLength: 2, maxLength: 6 })
      .map((commands): Move => ({ kind: 'burst', commands })),
  },
  {
    weight: 4,
    arbitrary: fc
      .uniqueArray(aRenewal, { minLength: 2, maxLength: 8, selector: ({ name, id }) => `${name} ${id}` })
      .map((renewals): Move => ({ kind: 'upkeep', renewals })),
  },
  {
    weight: 5,
    arbitrary: fc
      .constantFrom(1, 999, 40_000, 120_000, 900_000, 61_000_000)
      .map((micros): Move => ({ kind: 'pass', micros })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...SESSIONS), fc.boolean())
      .map(([session, on]): Move => ({ kind: 'listen', session, on })),
  },
)

describe.skipIf(!available('redis'))('the scripts and the pure claim queue', () => {
  let server: Server
  let commands: Redis
  let listener: Redis
  beforeAll(async () => {
    server = await redis()
    commands = new Redis(server.port)
    listener = new Redis(server.port)
  })
  afterAll(async () => {
    commands.disconnect()
    listener.disconnect()
    await server.stop()
  })

  /** One run: a fresh server, every session listening, the same moment on both sides. */
  class Run {
    private readonly ear = new Ear({ listener, commands, prefix: 'hf:s:', read: readMessage })
    readonly link = new VirtualTimeLink(commands)
    readonly store = new RedisStore(this.link, { prefix: 'hf', capabilities: capabilitiesOf('hybrid') })
    private readonly states = new Map<string, QueueState>()
    private micros = 1_700_000_000_123_456

    async start(): Promise<void> {
      await commands.flushall()
      await this.link.setTime(this.micros)
      await this.ear.start(SESSIONS)
    }

    async make(move: Move): Promise<void> {
      if (move.kind === 'pass') {
        this.micros += move.micros
        return this.link.setTime(this.micros)
      }
      if (move.kind === 'listen') return this.ear.turn(move.session, move.on)
      const commands =
        move.kind === 'upkeep'
          ? move.renewals.map((request): QueueCommand => ({ kind: 'renew', request }))
          : move.commands
      const [only, ...others] = commands
      const uncontended = only?.kind === 'release' && others.length === 0 && this.holds(only.claim)
      // What is sent in one moment is carried out in the order in which it was sent.
      const expected = commands.map((command) => ({ name: nameOf(command), ...this.model(command) }))
      const answers =
        move.kind === 'upkeep'
          ? await this.store.renew(move.renewals, TIMEOUT)
          : await Promise.all(commands.map((command) => this.real(command, uncontended)))
      for (const [i, { answer, retryAfter }] of expected.entries())
        deepEqual(answers[i], exact(answer, retryAfter))
      deepEqual(sorted(await this.ear.told()), sorted(expected.flatMap(({ notices }) => notices)))
      for (const { name } of expected) await this.compareState(name)
    }

    private model(command: QueueCommand) {
      const name = nameOf(command)
      const heardBy = (session: string): boolean => this.ear.listening.has(session)
      const { answer, notices } = step(this.state(name), command, this.now(), heardBy)
      const ends = view(this.state(name), name, this.now()).holders.map(({ expiresIn }) => expiresIn)
      return {
        answer,
        notices: notices.filter(({ session }) => heardBy(session)),
        retryAfter: Math.min(...ends),
      }
    }

    /** What a runtime knows, too: its lease has not ended. Whether somebody waits behind it, it may not know yet. */
    private holds({ name, id }: ClaimRef): boolean {
      return view(this.state(name), name, this.now()).holders.some((holder) => holder.id === id)
    }

    private async real(command: QueueCommand, uncontended: boolean): Promise<unknown> {
      switch (command.kind) {
        case 'claim':
          return this.store.claim(command.request, TIMEOUT)
        case 'renew':
          return (await this.store.renew([command.request], TIMEOUT))[0]
        case 'release':
          return this.store.release({ ...command.claim, uncontended }, command.next, TIMEOUT)
        case 'withdraw':
          return this.store.withdraw(command.claim, TIMEOUT)
        case 'downgrade':
          return this.store.downgrade(command.claim, TIMEOUT)
      }
    }

    private async compareState(name: string): Promise<void> {
      const real = await this.store.inspect(name, TIMEOUT)
      if ('kind' in real) throw real.cause
      deepEqual(byId(real), byId(view(this.state(name), name, this.now())))
    }

    private now(): Instant {
      return { ms: Math.floor(this.micros / 1000), micros: this.micros }
    }

    private state(name: string): QueueState {
      const state = this.states.get(name) ?? emptyQueue()
      this.states.set(name, state)
      return state
    }
  }

  it('answer every sequence of commands alike, tell sessions the same, and agree on who holds and waits', async () => {
    const property = fc.asyncProperty(
      fc.array(aMove, { minLength: 1, maxLength: 80, size: 'max' }),
      async (moves) => {
        const run = new Run()
        await run.start()
        for (const move of moves) await run.make(move)
      },
    )
    const result = await fc.check(property, { numRuns: Number(process.env['DIFFERENTIAL_RUNS'] ?? 150) })
    expect(result.failed ? fc.defaultReportMessage(result) : '').toBe('')
  }, 300_000)
})

function nameOf(command: QueueCommand): string {
  return 'request' in command ? command.request.name : command.claim.name
}

/** The model's `retryAfter` is a bound from below; the server knows the exact time. */
function exact<A extends object>(answer: A, retryAfter: number): A {
  const result: Record<string, unknown> = { ...(answer as object) }
  for (const [key, value] of Object.entries(answer) as [string, unknown][]) {
    if (key === 'retryAfter') {
      ok(Number(value) <= retryAfter)
      result[key] = retryAfter
    } else if (typeof value === 'object' && value !== null) result[key] = exact(value, retryAfter)
  }
  return result as A
}

/** Holders have no order; a name that nobody holds or waits for has no capacity to speak of. */
function byId({ name, capacity, holders, waiters }: NameInfo): NameInfo {
  const order = (a: ClaimInfo, b: ClaimInfo): number => (a.id < b.id ? -1 : 1)
  const idle = holders.length + waiters.length === 0
  return { name, capacity: idle ? 0 : capacity, holders: holders.toSorted(order), waiters }
}

/** Whether one holder hears of a queue before another is nobody's concern; each session's own events keep their order. */
function sorted(notices: readonly Notice[]): readonly Notice[] {
  const key = ({ session, event }: Notice): string => session + (event as StoreEvent & { id: string }).id
  return notices.toSorted((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0))
}
