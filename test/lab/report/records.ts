import type { RunRecord, TimelineEvent } from '../../../src/lab/record.ts'

const event = (at: number, client: string, kind: TimelineEvent['kind'], token?: string): TimelineEvent => ({
  at,
  client,
  name: 'seat <17>',
  kind,
  ...(token === undefined ? {} : { token, validUntil: at + 500 }),
})

/** Two clients: one is paused while it holds the lock, the other takes over, and the late write is refused. */
export const paused: RunRecord = {
  id: 'live/redis/pause',
  title: 'Redis, the holder stands still',
  store: 'redis',
  fault: 'pause',
  seed: 7,
  durationMs: 2000,
  clients: ['client 1', 'client 2'],
  faults: [
    { at: 120, until: 900, kind: 'pause', target: 'client 1' },
    { at: 1500, kind: 'cut', target: 'connections' },
  ],
  timeline: [
    event(10, 'client 1', 'waiting'),
    event(20, 'client 1', 'acquired', '1001'),
    event(30, 'client 2', 'waiting'),
    event(100, 'client 1', 'renewed', '1001'),
    event(700, 'client 2', 'acquired', '1002'),
    event(720, 'client 2', 'write', '1002'),
    event(730, 'client 2', 'releasing', '1002'),
    event(735, 'client 2', 'released', '1002'),
    event(905, 'client 1', 'lost', '1001'),
    event(910, 'client 1', 'write-refused', '1001'),
    event(1600, 'client 2', 'waiting'),
  ],
  violations: [
    {
      check: 'exclusivity',
      message: 'client 1 & client 2 <both>',
      at: 705,
      clients: ['client 1', 'client 2'],
    },
    { check: 'lost update', message: '2 increments were built on 4' },
  ],
  verdicts: [
    { check: 'exclusivity', expected: 'holds', seen: 'broke', why: 'client 1 & client 2 <both>' },
    { check: 'lost update', expected: 'breaks', seen: 'broke', why: '2 increments were built on 4' },
    { check: 'fenced resource', expected: 'holds', seen: 'held' },
    { check: 'linearizability', expected: 'holds', seen: 'unknown', why: 'the search was given up' },
  ],
}

export const calm: RunRecord = {
  ...paused,
  id: 'live/redis/none',
  title: 'Redis, nothing happens',
  fault: 'none',
  faults: [],
  violations: [],
  verdicts: [
    { check: 'exclusivity', expected: 'holds', seen: 'held' },
    { check: 'lost update', expected: 'may break', seen: 'held' },
  ],
}

export const missing: RunRecord = {
  ...calm,
  id: 'live/redis/clock',
  title: 'Redis, its clock jumps',
  fault: 'clock-jump',
  clients: [],
  timeline: [],
  verdicts: [{ check: 'exclusivity', expected: 'breaks', seen: 'not run', why: 'there is no compiler' }],
}

/** Far more than a picture can show. */
export function crowded(events: number): RunRecord {
  const clients = ['a', 'b', 'c']
  const timeline = Array.from({ length: events }, (_, index): TimelineEvent => {
    const kind = (['waiting', 'acquired', 'releasing', 'released'] as const)[index % 4] ?? 'waiting'
    return event(
      index,
      clients[Math.floor(index / 4) % 3] ?? 'a',
      kind,
      kind === 'waiting' ? undefined : String(index - (index % 4)),
    )
  })
  return { ...paused, id: 'sim/crowded', title: 'A crowd', durationMs: events, clients, timeline, faults: [] }
}
