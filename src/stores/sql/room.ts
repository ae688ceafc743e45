import { AsyncLocalStorage } from 'node:async_hooks'
import { InvalidArgumentError } from '../../core/errors.ts'
import { TimeIsUp } from './client.ts'
import type { Call } from './client.ts'

/** What one of the transactions has. */
interface Place {
  /** How many others its work waits for. */
  waits: number
}

/** Whose work this is a part of. */
const places = new AsyncLocalStorage<ReadonlyMap<Room, Place>>()

/**
 * What a pool's connections are for. Guarded transactions keep one each to their end, and calls one for a moment; but a crowd
 * of calls may be in line for longer than a lease lasts. If either had all connections, no lease could be renewed meanwhile:
 * neither theirs nor anybody else's of the process.
 */
export class Room {
  private readonly connections: number
  private kept = 0
  private used = 0
  private readonly waiting: (() => void)[] = []
  private readonly places = new Set<Place>()
  private calling = 0
  private readonly inLine: (() => void)[] = []

  constructor(connections: number) {
    this.connections = connections
  }

  /** Connections that something else always needs. At least one transaction has room all the same. */
  keep(connections: number): void {
    this.kept = Math.max(this.kept, connections)
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.hasMore) this.used++
    else await this.wait()
    const place: Place = { waits: 0 }
    this.places.add(place)
    const around = places.getStore() ?? new Map<Room, Place>()
    try {
      return await places.run(new Map([...around, [this, place]]), work)
    } finally {
      this.places.delete(place)
      this.used--
      while (this.waiting.length > 0 && this.hasMore) {
        this.used++
        this.waiting.shift()?.()
      }
    }
  }

  /** Makes a call, in its turn; an urgent one at once. */
  async call<T>(call: Call, work: () => Promise<T>): Promise<T> {
    if (call.urgent) return work()
    if (this.calling < this.most) this.calling++
    else await new Promise<void>((resolve) => this.inLine.push(resolve))
    try {
      if (call.expired) throw new TimeIsUp()
      return await work()
    } finally {
      this.calling--
      while (this.inLine.length > 0 && this.calling < this.most) {
        this.calling++
        this.inLine.shift()?.()
      }
    }
  }

  /** Calls that may be under way at once. */
  private get most(): number {
    return Math.max(1, this.connections - this.kept - this.used)
  }

  private async wait(): Promise<void> {
    const around = places.getStore()?.get(this)
    if (around !== undefined) around.waits++
    try {
      if ([...this.places].every(({ waits }) => waits > 0)) throw noRoom()
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    } finally {
      if (around !== undefined) around.waits--
    }
  }

  private get hasMore(): boolean {
    return this.used < Math.max(1, this.connections - this.kept)
  }
}

const noRoom = (): InvalidArgumentError =>
  new InvalidArgumentError(
    'Guarded work waits for another guarded transaction, and the pool has no connection for it before the work is over: ' +
      'both would wait for ever. Guard one transaction with a lease on all the names, or give the pool more connections',
    { argument: 'work' },
  )

const rooms = new WeakMap<object, Room>()

/** One for all stores on a pool: it is the pool that must not run out. */
export function roomIn(pool: object, connections: number, kept: number): Room {
  let room = rooms.get(pool)
  if (room === undefined) rooms.set(pool, (room = new Room(connections)))
  room.keep(kept)
  return room
}
