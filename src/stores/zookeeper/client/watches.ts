import type { JuteReader, JuteWriter } from './jute.ts'
import { OPCODES } from './records.ts'

export type WatchEventType = 'created' | 'deleted' | 'changed' | 'children'

export interface WatchEvent {
  readonly type: WatchEventType
  readonly path: string
}

export type Watcher = (event: WatchEvent) => void

/** `data`: set by getData. `exists`: set by exists, also on nothing. `children`: set by getChildren. All fire once. */
export type WatchKind = 'data' | 'exists' | 'children' | 'persistent' | 'recursive'

const EVENT_TYPES: readonly (WatchEventType | undefined)[] = [
  undefined,
  'created',
  'deleted',
  'changed',
  'children',
]

const FIRES: Readonly<Record<WatchEventType, readonly WatchKind[]>> = {
  created: ['data', 'exists'],
  deleted: ['data', 'exists', 'children'],
  changed: ['data', 'exists'],
  children: ['children'],
}

const KINDS: readonly WatchKind[] = ['data', 'exists', 'children', 'persistent', 'recursive']
/** Far below the server's limit for one message (1 MB): 12,000 watches must not keep a session from coming back. */
const BATCH_BYTES = 100_000
/** What such a message has beside its paths: three numbers, of which one is long, and the lengths of five lists. */
const FRAME_BYTES = 36

export function readEvent(reader: JuteReader): WatchEvent | undefined {
  const type = EVENT_TYPES[reader.int()]
  reader.int()
  const path = reader.string()
  return type === undefined ? undefined : { type, path }
}

/** What this client watches, by the server's paths. */
export class Watches {
  private readonly byKind: Readonly<Record<WatchKind, Map<string, Set<Watcher>>>> = {
    data: new Map(),
    exists: new Map(),
    children: new Map(),
    persistent: new Map(),
    recursive: new Map(),
  }

  add(kind: WatchKind, path: string, watcher: Watcher): void {
    const paths = this.byKind[kind]
    const watchers = paths.get(path)
    if (watchers === undefined) paths.set(path, new Set([watcher]))
    else watchers.add(watcher)
  }

  /** True: it was the last one of its kind there, so that the server can forget the path. */
  delete(kind: WatchKind, path: string, watcher: Watcher): boolean {
    const paths = this.byKind[kind]
    const watchers = paths.get(path)
    if (watchers === undefined || !watchers.delete(watcher)) return false
    if (watchers.size > 0) return false
    paths.delete(path)
    return true
  }

  has(kind: WatchKind, path: string): boolean {
    return this.byKind[kind].has(path)
  }

  get size(): number {
    return KINDS.reduce((sum, kind) => sum + this.byKind[kind].size, 0)
  }

  /** Whom an event of the server concerns. Those that fire once are forgotten. */
  fired({ type, path }: WatchEvent): Watcher[] {
    const watchers: Watcher[] = []
    for (const kind of FIRES[type]) {
      const paths = this.byKind[kind]
      const here = paths.get(path)
      if (here === undefined) continue
      watchers.push(...here)
      paths.delete(path)
    }
    watchers.push(...(this.byKind.persistent.get(path) ?? []))
    if (this.byKind.recursive.size > 0 && type !== 'children') watchers.push(...this.above(path))
    return watchers
  }

  private above(path: string): Watcher[] {
    const watchers: Watcher[] = []
    for (let at = path; ; at = at.slice(0, Math.max(at.lastIndexOf('/'), 1))) {
      watchers.push(...(this.byKind.recursive.get(at) ?? []))
      if (at === '/') return watchers
    }
  }

  clear(): void {
    for (const kind of KINDS) this.byKind[kind].clear()
  }

  /**
   * Everything, cut into messages of `most` bytes that a server takes: it answers with an event for all that happened since `zxid`.
   */
  *restore(
    zxid: bigint,
    most: number = BATCH_BYTES,
  ): Iterable<{ readonly opcode: number; write(writer: JuteWriter): void }> {
    const room = Math.min(most, BATCH_BYTES) - FRAME_BYTES
    let batch = emptyBatch()
    let bytes = 0
    for (const kind of KINDS) {
      for (const path of this.byKind[kind].keys()) {
        const more = 4 + Buffer.byteLength(path)
        if (bytes > 0 && bytes + more > room) {
          yield restoring(zxid, batch)
          batch = emptyBatch()
          bytes = 0
        }
        batch[kind].push(path)
        bytes += more
      }
    }
    if (bytes > 0) yield restoring(zxid, batch)
  }
}

type Batch = Record<WatchKind, string[]>
const emptyBatch = (): Batch => ({ data: [], exists: [], children: [], persistent: [], recursive: [] })

function restoring(zxid: bigint, batch: Batch): { opcode: number; write(writer: JuteWriter): void } {
  // Servers before 3.6 know neither these two kinds nor the message that carries them.
  const lasting = batch.persistent.length + batch.recursive.length > 0
  return {
    opcode: lasting ? OPCODES.setWatches2 : OPCODES.setWatches,
    write: (writer) => {
      writer.long(zxid)
      writer.strings(batch.data)
      writer.strings(batch.exists)
      writer.strings(batch.children)
      if (!lasting) return
      writer.strings(batch.persistent)
      writer.strings(batch.recursive)
    },
  }
}
