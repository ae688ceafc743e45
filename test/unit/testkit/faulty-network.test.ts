import { describe, expect, it } from 'vitest'

import { ALL } from '../../../src/core/contract.ts'
import type { Store, Unknown } from '../../../src/core/contract.ts'
import { HoldfastError } from '../../../src/core/errors.ts'
import { Holdfast } from '../../../src/locks/holdfast.ts'
import type { Lock } from '../../../src/locks/lock.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { checkExclusivity } from '../../../src/testkit/checkers/exclusivity.ts'
import { checkLeftovers } from '../../../src/testkit/checkers/leftovers.ts'
import { checkTokenOrder } from '../../../src/testkit/checkers/token-order.ts'
import type { Violation } from '../../../src/testkit/checkers/violation.ts'
import { nanoseconds, Recorder } from '../../../src/testkit/history.ts'
import { holdsOf } from '../../../src/testkit/holds.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { changed, plain } from './lesser-stores.ts'

const SEEDS = Number(process.env['SEEDS'] ?? 25)
const BAD_MS = 5000

/**
 * A network that, while it is bad, loses requests, loses replies, and delivers requests after their sender has given up.
 * A request that was given up is not *sent* later, but what was sent may arrive late: as with a connection that broke.
 */
class BadNetwork {
  readonly env: VirtualEnv
  bad = true
  private readonly odds: number

  constructor(env: VirtualEnv) {
    this.env = env
    this.odds = 0.6 + env.random() * 0.4
  }

  lead(store: Store): Store {
    return changed(store, {
      claim: (request, timeout) => {
        const sent = plain(request)
        return this.send(timeout, () => store.claim(sent, timeout))
      },
      renew: async (requests, timeout) => {
        const sent = requests.map(({ name, id, ttl, patience, tokens }) => ({
          name,
          id,
          ttl,
          patience,
          tokens,
        }))
        const answers = await this.send(timeout, () => store.renew(sent, timeout))
        return 'kind' in answers ? requests.map(() => answers) : answers
      },
      release: async ({ name, id }, next, timeout) => {
        const sent = next === undefined ? undefined : plain(next)
        const answer = await this.send(timeout, () => store.release({ name, id }, sent, timeout))
        return 'kind' in answer
          ? { released: answer, ...(sent === undefined ? {} : { next: answer }) }
          : answer
      },
      withdraw: ({ name, id }, timeout) => this.send(timeout, () => store.withdraw({ name, id }, timeout)),
      watch: (session, listener, timeout) =>
        store.watch(
          session,
          (event) => {
            if (this.lucky(0.8)) this.after(this.lucky(0.8) ? 4 : 600, () => listener(event))
          },
          timeout,
        ),
    })
  }

  private async send<T>(timeout: number, run: () => T | Promise<T>): Promise<T | Unknown> {
    const unknown: Unknown = { kind: 'unknown', cause: new Error('no answer') }
    const { env } = this
    if (!this.lucky(this.odds)) {
      // Lost on the way, or stuck until long after the sender has given up.
      if (env.random() < 0.5) this.after(timeout * 3, () => void run())
      await env.sleep(Math.min(timeout, 20))
      return unknown
    }
    await env.sleep(env.random() * 4)
    const answer = await run()
    if (!this.lucky(this.odds)) {
      await env.sleep(Math.min(timeout, 20))
      return unknown
    }
    await env.sleep(env.random() * 4)
    return answer
  }

  private lucky(odds: number): boolean {
    return !this.bad || this.env.random() < odds
  }

  private after(ms: number, call: () => void): void {
    this.env.setTimer(call, this.env.random() * ms, true)
  }
}

interface Outcome {
  readonly violations: readonly Violation[]
  readonly grants: number
}

async function run(seed: number): Promise<Outcome> {
  const env = new VirtualEnv({ seed })
  const network = new BadNetwork(env)
  const memory = memoryStore({ now: () => env.instant() })
  const options = { env, ttl: 400, patience: 300, requestTimeout: 100 }
  const holdfasts = [1, 2, 3].map(() => new Holdfast(network.lead(memory), options))
  const recorders = holdfasts.map(
    (_, index) => new Recorder(`p${index}`, { now: () => nanoseconds(env.mono()) }),
  )
  const workers = holdfasts.flatMap((holdfast, index) => {
    const { read, write } = holdfast.readWriteLock('shared')
    const mutex = holdfast.mutex('mutex')
    const recorder = recorders[index] as Recorder
    return [
      work(env, recorder, mutex, { weight: 1, capacity: 1 }),
      work(env, recorder, mutex, { weight: 1, capacity: 1 }),
      work(env, recorder, read, { weight: 1, capacity: ALL }),
      work(env, recorder, write, { weight: ALL, capacity: ALL }),
    ]
  })
  await env.until(Promise.all([...workers, env.sleep(BAD_MS).then(() => (network.bad = false))]))
  await env.until(Promise.all(holdfasts.map((holdfast) => holdfast.close())))
  const names = await Promise.all(['mutex', 'shared'].map(async (name) => memory.inspect(name, 0)))
  const holds = holdsOf(recorders.flatMap(({ events }) => events))
  const remains = checkLeftovers({
    names: names.flatMap((info) => ('kind' in info ? [] : [info])),
    timers: env.foregroundTimers,
  })
  return {
    violations: [...checkExclusivity(holds), ...checkTokenOrder(holds), ...remains],
    grants: holds.length,
  }
}

/** Takes and releases a lock, sometimes giving up, until the network has been good for a while. */
async function work(
  env: VirtualEnv,
  recorder: Recorder,
  lock: Lock,
  shape: { readonly weight: number; readonly capacity: number },
): Promise<void> {
  while (env.mono() < BAD_MS + 1000) {
    const story = recorder.acquire(lock.name, shape)
    const controller = new AbortController()
    const giveUp = env.setTimer(() => controller.abort(), env.random() * 1000, true)
    try {
      const lease = await lock.acquire({ wait: 500, signal: controller.signal })
      story.acquired(lease)
      lease.signal.addEventListener('abort', () => story.lost())
      await env.sleep(env.random() * 30)
      if (lease.held) story.check(lease)
      story.releasing()
      story.released(await lease.release())
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
      story.failed()
    } finally {
      giveUp.cancel()
    }
    await env.sleep(env.random() * 20)
  }
}

describe('locks over a network that loses, delays and repeats what it is given', () => {
  it('are never held twice, keep their tokens in order, and leave nothing behind', async () => {
    let grants = 0
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const outcome = await run(seed)
      expect([seed, outcome.violations]).toEqual([seed, []])
      grants += outcome.grants
    }
    expect(grants).toBeGreaterThan(SEEDS * 100)
  })
})
