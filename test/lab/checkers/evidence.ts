import type { Evidence } from '../../../src/lab/live/index.ts'
import type { FaultRecord } from '../../../src/lab/record.ts'
import type { Decision } from '../../../src/lab/resource/register.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { Recorder } from '../../../src/testkit/index.ts'
import type { HistoryEvent } from '../../../src/testkit/index.ts'

const NS = 1_000_000
const ns = (ms: number): bigint => BigInt(Math.round(ms * NS))

export const REDIS_LIKE = {
  ...memoryStore().capabilities,
  guarantees: {
    holderCrash: 'holds',
    holderPause: 'fenced',
    partition: 'holds',
    storeRestart: 'fenced',
    failover: 'fenced',
    storeClockJump: 'fenced',
  },
} as const

/** Evidence of a run that never was, written by hand: clients take turns every 20 ms, in milliseconds since it began. */
export class Script {
  readonly history: HistoryEvent[] = []
  readonly fenced: Decision[] = []
  readonly unfenced: Decision[] = []
  readonly faults: FaultRecord[] = []
  private now = 0
  private value = 0
  private highest = -1n
  private readonly recorders = new Map<string, Recorder>()

  /** A section: asked for, held and given back at these times, with a write in its middle. */
  section(client: string, asked: number, from: number, to: number, token: bigint = ns(from)): void {
    const recorder =
      this.recorders.get(client) ??
      new Recorder(client, { now: () => ns(this.now), onEvent: (event) => void this.history.push(event) })
    this.recorders.set(client, recorder)
    this.now = asked
    const story = recorder.acquire('seat')
    this.now = from
    const lease = { token, remaining: () => 1000 }
    story.acquired(lease)
    this.write(client, token, (from + to) / 2)
    this.now = to
    story.check(lease)
    story.releasing()
    this.now = to + 1
    story.released('released')
  }

  /** So many sections one after the other, by clients in turn; returns when the last one ended. */
  turns(count: number, from: number, clients: readonly string[] = ['a', 'b']): number {
    let at = from
    for (let turn = 0; turn < count; turn += 1) {
      const client = clients[turn % clients.length] ?? 'a'
      this.section(client, at - 15, at + 2, at + 20)
      at += 22
    }
    return at
  }

  evidence(
    kinds: readonly Evidence['settings']['nemeses'][number][],
    more: Partial<Evidence> = {},
  ): Evidence {
    const endedAt = this.now + 100
    return {
      format: 1,
      settings: {
        ttl: 1000,
        lateExpiry: 0,
        names: [{ name: 'seat', kind: 'mutex' }],
        nemeses: kinds,
        capabilities: REDIS_LIKE,
      },
      began: 0n,
      healedAt: endedAt,
      endedAt,
      history: this.history,
      notes: [],
      faults: this.faults,
      missed: [],
      clients: [...this.recorders.keys()].map((label) => ({ label, startedAt: 0 })),
      errors: [],
      noise: [],
      looks: [],
      registers: [
        {
          name: 'seat',
          fenced: this.fenced,
          unfenced: this.unfenced,
          final: { unfenced: this.value, fenced: this.value },
        },
      ],
      remains: [],
      stuck: [],
      stalls: [],
      ...more,
    }
  }

  private write(client: string, token: bigint, at: number): void {
    const accepted = token >= this.highest
    if (accepted) this.highest = token
    const decision = {
      kind: 'write',
      client,
      token,
      read: this.value,
      wrote: this.value + 1,
      at: ns(at),
    } as const
    this.unfenced.push({ ...decision, accepted: true })
    this.fenced.push({ ...decision, accepted })
    this.value += 1
  }
}
