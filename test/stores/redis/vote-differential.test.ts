import { deepEqual, equal } from 'node:assert/strict'

import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, redis } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import type { Instant } from '../../../src/core/claim-queue.ts'
import type { ConfirmRequest, ExtendRequest, VoteRef, VoteRequest } from '../../../src/core/contract.ts'
import * as rule from '../../../src/core/vote-cell.ts'
import { ATTEMPTS } from '../../../src/core/vote-cell.ts'
import type { CellAnswer, CellNotice, VoteCell } from '../../../src/core/vote-cell.ts'
import { RedisVoter } from '../../../src/stores/redis/votes/store.ts'
import { readNotice } from '../../../src/stores/redis/votes/wire.ts'
import { Ear } from './ear.ts'
import { VirtualTimeLink } from './virtual-time.ts'

const SESSIONS = ['ann', 'bob', 'eve']
const NAMES = ['a', 'b{c} %']
const TIMEOUT = 5_000
const PREFIX = 'hf:v:s:'

/** A token near one that was given out: `ago` says how many grants before the last one of the name. */
interface Near {
  readonly ago: number
  readonly off: number
}

type Step =
  | { readonly kind: 'vote'; readonly request: VoteRequest }
  | { readonly kind: 'confirm'; readonly ref: VoteRef; base: Near; token: Near; count: number }
  | { readonly kind: 'extend'; readonly ref: VoteRef; token: Near; size: number; more: Extension }
  | { readonly kind: 'release'; readonly ref: VoteRef; readonly tell: boolean }
  | { readonly kind: 'withdraw'; readonly ref: VoteRef }
  | { readonly kind: 'pass'; readonly micros: number }
  | { readonly kind: 'listen'; readonly session: string; readonly on: boolean }

type Extension = Pick<ExtendRequest, 'ttl' | 'tokens' | 'mode'>

/** Few, so that they meet again, and some that others begin with. */
const aRef = fc
  .record({
    name: fc.constantFrom(...NAMES),
    session: fc.constantFrom(...SESSIONS),
    number: fc.constantFrom(1, 12),
    // The last two are of other clients.
    attempt: fc.constantFrom(1, 1, 2, 12, ATTEMPTS + 1, 9 * ATTEMPTS + 2),
  })
  .map(({ name, session, number, attempt }) => ({ name, id: `${session}.${number}`, attempt }))
const near = fc.record({ ago: fc.constantFrom(0, 0, 0, 1, 2), off: fc.constantFrom(-1, 0, 0, 1, 9) })
const ttl = fc.constantFrom(100, 700, 3_000)
const count = fc.constantFrom(1, 1, 1, 8)
const yesOrNo = fc.boolean()

const aVote = fc
  .record({ ref: aRef, ttl, tokens: count, interest: yesOrNo })
  .map(({ ref, ...rest }) => ({ ...ref, ...rest, owner: `host of ${ref.id}, process 7`, probation: 0 }))
const anExtension = fc.record({
  ttl,
  tokens: fc.constantFrom(0, 0, 0, 4),
  mode: fc.constantFrom<ExtendRequest['mode']>('keep', 'restore'),
})

const aStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: aVote.map((request): Step => ({ kind: 'vote', request })) },
  {
    weight: 6,
    arbitrary: fc.record<Step & { kind: 'release' }>({
      kind: fc.constant('release'),
      ref: fc.oneof(
        { weight: 4, arbitrary: aRef },
        { weight: 1, arbitrary: aRef.map((ref) => ({ ...ref, attempt: 0 })) },
      ),
      tell: yesOrNo,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record<Step & { kind: 'confirm' }>({
      kind: fc.constant('confirm'),
      ref: aRef,
      base: near,
      token: near,
      count,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record<Step & { kind: 'extend' }>({
      kind: fc.constant('extend'),
      ref: aRef,
      token: near,
      size: fc.constantFrom(1, 1, 8, 20),
      more: anExtension,
    }),
  },
  { weight: 1, arbitrary: aRef.map((ref): Step => ({ kind: 'withdraw', ref })) },
  {
    weight: 4,
    arbitrary: fc
      .constantFrom(1_000, 40_000, 120_000, 900_000, 61_000_000)
      .map((micros): Step => ({ kind: 'pass', micros })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...SESSIONS), yesOrNo)
      .map(([session, on]): Step => ({ kind: 'listen', session, on })),
  },
)

describe.skipIf(!available('redis'))('the scripts of votes and the pure cell', () => {
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
    private readonly ear = new Ear({ listener, commands, prefix: PREFIX, read: readNotice })
    private readonly link = new VirtualTimeLink(commands)
    private readonly voter = new RedisVoter(this.link, 'hf')
    private readonly cells = new Map(NAMES.map((name) => [name, rule.emptyCell()]))
    /** The tokens that were given out for each name, the last one first. */
    private readonly given = new Map<string, number[]>(NAMES.map((name) => [name, [1_700_000_000_000_000]]))
    private micros = 1_700_000_000_123_456

    async start(): Promise<void> {
      await commands.flushall()
      await this.link.setTime(this.micros)
      await this.ear.start(SESSIONS)
    }

    async make(step: Step): Promise<void> {
      if (step.kind === 'pass') {
        this.micros += step.micros
        return this.link.setTime(this.micros)
      }
      if (step.kind === 'listen') return this.ear.turn(step.session, step.on)
      // No two come at the same moment: who was first would be chance.
      await this.link.setTime(++this.micros)
      const name = step.kind === 'vote' ? step.request.name : step.ref.name
      const notices: CellNotice[] = []
      const [expected, answer] = await this.both(step, this.cell(name), notices)
      deepEqual(answer, 'token' in expected ? { ...expected, token: BigInt(expected.token) } : expected)
      if ('token' in expected) this.given.get(name)?.unshift(expected.token)
      deepEqual(
        await this.ear.told(),
        notices.filter(({ session }) => this.ear.listening.has(session)),
      )
      deepEqual(await this.voter.inspect(name, TIMEOUT), rule.viewCell(this.cell(name), name, this.now()))
      // The fence, too, which nobody is shown.
      const [key] = await commands.keys(`hf:v:{${name === 'a' ? 'a' : '*%25'}}`)
      equal(Number((key !== undefined && (await commands.hget(key, 'f'))) || 0), this.cell(name).fence)
    }

    /** What the rule says, and what the server says. */
    private async both(
      step: Exclude<Step, { kind: 'pass' | 'listen' }>,
      cell: VoteCell,
      notices: CellNotice[],
    ): Promise<[CellAnswer, unknown]> {
      const now = this.now()
      const { voter } = this
      const how = { now, reachable: (session: string) => this.ear.listening.has(session) }
      switch (step.kind) {
        case 'vote':
          return [rule.vote(cell, step.request, now, notices), await voter.vote(step.request, TIMEOUT)]
        case 'confirm': {
          const { ref } = step
          const [base, token] = [this.near(ref, step.base), this.near(ref, step.token)]
          const request: ConfirmRequest = { ...ref, base, token, count: step.count }
          return [rule.confirm(cell, request, now), await voter.confirm(request, TIMEOUT)]
        }
        case 'extend': {
          const token = this.near(step.ref, step.token)
          const block = { token, top: token + BigInt(step.size - 1) }
          const request = { ...step.ref, ...step.more, ...block, owner: 'who else', probation: 0 }
          return [rule.extend(cell, request, now), (await voter.extend([request], TIMEOUT))[0]]
        }
        case 'release': {
          // What a runtime knows, too: its lease has not ended. Whether somebody is interested, it may not know yet.
          const view = rule.viewCell(cell, step.ref.name, now)
          const uncontended = 'id' in view && view.id === step.ref.id && view.attempt === step.ref.attempt
          const answer = rule.release(cell, step.ref, { ...how, tell: step.tell }, notices)
          return [answer, await voter.release({ ...step.ref, uncontended }, step.tell, TIMEOUT)]
        }
        case 'withdraw': {
          const answer = rule.release(cell, { ...step.ref, attempt: 0 }, { ...how, tell: true }, notices)
          rule.withdraw(cell, step.ref, now)
          return [answer, await voter.withdraw(step.ref, TIMEOUT)]
        }
      }
    }

    private near({ name }: VoteRef, { ago, off }: Near): bigint {
      const given = this.given.get(name) ?? []
      return BigInt((given[Math.min(ago, given.length - 1)] ?? 0) + off)
    }

    private now(): Instant {
      return { ms: Math.floor(this.micros / 1000), micros: this.micros }
    }

    private cell(name: string): VoteCell {
      return this.cells.get(name) ?? rule.emptyCell()
    }
  }

  it('answer every sequence alike, tell sessions the same, and agree on who holds and on the fence', async () => {
    const property = fc.asyncProperty(
      fc.array(aStep, { minLength: 1, maxLength: 80, size: 'max' }),
      async (steps) => {
        const run = new Run()
        await run.start()
        for (const step of steps) await run.make(step)
      },
    )
    const result = await fc.check(property, { numRuns: Number(process.env['DIFFERENTIAL_RUNS'] ?? 150) })
    expect(result.failed ? fc.defaultReportMessage(result) : '').toBe('')
  }, 300_000)
})
