import { sessionOf } from '../../core/claim-queue.ts'
import type { StoreEvent, StoreListener, Watch } from '../../core/contract.ts'

/** Who is told what: the callers' sessions, each with its listener. */
export class Listeners {
  private readonly bySession = new Map<string, StoreListener>()

  add(session: string, listener: StoreListener): Watch {
    this.bySession.set(session, listener)
    return { kind: 'watching', stop: () => void this.bySession.delete(session) }
  }

  /** Whether whoever has this claim would be told. */
  has(id: string): boolean {
    return this.bySession.has(sessionOf(id))
  }

  tell(id: string, event: StoreEvent): void {
    this.bySession.get(sessionOf(id))?.(event)
  }

  /** Something may have been missed by whoever has these claims; each session hears it once. */
  gap(ids: readonly string[]): void {
    for (const session of new Set(ids.map(sessionOf))) this.bySession.get(session)?.({ kind: 'gap' })
  }

  clear(): void {
    this.bySession.clear()
  }
}
