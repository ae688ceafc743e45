import fc from 'fast-check'

import { emptyQueue, step } from '../../../src/core/claim-queue.ts'
import type { QueueCommand } from '../../../src/core/claim-queue.ts'
import type { ClaimRequest, StoreEvent } from '../../../src/core/contract.ts'
import { validUntil } from '../../../src/core/validity.ts'
import { nanoseconds, Recorder } from '../../../src/testkit/history.ts'
import type { HistoryEvent, Story } from '../../../src/testkit/history.ts'

/** What one client does next: ask if it has nothing, else go on or release. */
interface Turn {
  readonly client: number
  readonly weight: number
  readonly pause: number
}

interface Seat {
  readonly recorder: Recorder
  story: Story | undefined
  request: ClaimRequest | undefined
  held: { readonly token: bigint; readonly until: number } | undefined
  asked: number
}

const CLIENTS = 5
const TTL = 200

/** Histories that come about when clients use the claim queue as they should. Some of them let their leases run out. */
export function legalHistories(capacity: number): fc.Arbitrary<HistoryEvent[]> {
  const turn: fc.Arbitrary<Turn> = fc.record({
    client: fc.nat(CLIENTS - 1),
    weight: fc.constantFrom(1, 1, capacity),
    pause: fc.constantFrom(0, 1, 3, 10, 10, TTL + 10),
  })
  return fc
    .array(turn, { minLength: 10, maxLength: 60, size: 'max' })
    .map((turns) => new Office(capacity).run(turns))
}

class Office {
  private readonly queue = emptyQueue()
  private readonly capacity: number
  private readonly seats: Seat[]
  private ms = 0

  constructor(capacity: number) {
    this.capacity = capacity
    this.seats = Array.from({ length: CLIENTS }, (_, index) => ({
      recorder: new Recorder(`p${index}`, { now: () => this.tick() }),
      story: undefined,
      request: undefined,
      held: undefined,
      asked: 0,
    }))
  }

  run(turns: readonly Turn[]): HistoryEvent[] {
    for (const { client, weight, pause } of turns) {
      const seat = this.seats[client]
      if (seat === undefined) continue
      if (seat.story === undefined) this.ask(client, seat, weight)
      else if (seat.held !== undefined) this.release(seat)
      this.ms += pause
    }
    return this.seats.flatMap(({ recorder }) => recorder.events)
  }

  /** No two events at the same time. */
  private tick(): bigint {
    this.ms += 0.001
    return nanoseconds(this.ms)
  }

  private ask(client: number, seat: Seat, weight: number): void {
    const { capacity } = this
    seat.asked += 1
    seat.story = seat.recorder.acquire('n', { weight, capacity })
    seat.request = {
      name: 'n',
      id: `${client}.${seat.asked}`,
      weight,
      capacity,
      ttl: TTL,
      patience: 1e9,
      tokens: 1,
      whenBusy: 'queue',
      owner: '',
    }
    const sentAt = this.ms
    const answer = this.command({ kind: 'claim', request: seat.request })
    if ('token' in answer && typeof answer.token === 'bigint') this.granted(seat, answer.token, sentAt)
    else seat.story.queued()
  }

  private release(seat: Seat): void {
    const { story, held, request } = seat
    if (story === undefined || held === undefined || request === undefined) return
    const expired = this.ms >= held.until
    if (expired) story.lost()
    story.releasing()
    this.command({ kind: 'release', claim: request })
    story.released(expired ? 'expired' : 'released')
    seat.story = seat.held = seat.request = undefined
  }

  private command(command: QueueCommand): object {
    this.tick()
    const { answer, notices } = step(this.queue, command, { ms: this.ms, micros: 0 })
    this.tick()
    for (const { event } of notices) this.tell(event)
    return answer
  }

  private tell(event: StoreEvent): void {
    const seat = this.seats.find(({ request }) => 'id' in event && request?.id === event.id)
    if (event.kind === 'granted' && seat !== undefined) this.granted(seat, event.token, this.ms - 0.002)
  }

  private granted(seat: Seat, token: bigint, sentAt: number): void {
    const until = validUntil(sentAt, TTL)
    seat.held = { token, until }
    seat.story?.acquired({ token, remaining: () => until - this.ms })
  }
}
