import type { HistoryEvent } from '../../testkit/history.ts'
import { Recorder } from '../../testkit/history.ts'
import type { At, FaultRecord, TimelineEvent } from '../record.ts'
import { since, timelineOf } from './timeline.ts'

/** Ends a fault that lasts. */
export type EndFault = () => void

/** Everything that is written down while a run lasts, on one clock: all processes of a machine share the monotonic one. */
export class Diary {
  readonly began: bigint = process.hrtime.bigint()
  readonly history: HistoryEvent[] = []
  private readonly lastLooks = new Map<string, number>()
  private readonly struck: FaultRecord[] = []
  private readonly noted: TimelineEvent[] = []

  /** Of looks at the same lease only the last one counts: what it says is longest. */
  write(event: HistoryEvent): void {
    const key = `${event.process}\n${event.op}`
    const index = this.lastLooks.get(key)
    const last = index === undefined ? undefined : this.history[index]
    const again =
      event.kind === 'check' &&
      last?.token === event.token &&
      (last?.validUntil ?? 0n) <= (event.validUntil ?? 0n)
    if (again && index !== undefined) {
      this.history[index] = event
      return
    }
    this.history.push(event)
    if (event.kind === 'check') this.lastLooks.set(key, this.history.length - 1)
    else this.lastLooks.delete(key)
  }

  /** A recorder for a client that lives in this process. */
  recorder(client: string): Recorder {
    return new Recorder(client, { onEvent: (event) => void this.history.push(event) })
  }

  now(): At {
    return since(this.began, process.hrtime.bigint())
  }

  /** Something that is over as soon as it is done; `since`: it struck between then and now. */
  fault(kind: string, target: string, detail?: string, since?: At): void {
    const now = this.now()
    const when = since === undefined ? { at: now } : { at: since, until: now }
    this.struck.push({ ...when, kind, target, ...(detail !== undefined && { detail }) })
  }

  /** Something that lasts until it is taken back, and is only what it says after `least` milliseconds. */
  faultBegins(
    kind: string,
    target: string,
    { detail, least }: { readonly detail?: string; readonly least?: number } = {},
  ): EndFault {
    const index = this.struck.length
    this.struck.push({
      at: this.now(),
      kind,
      target,
      ...(detail !== undefined && { detail }),
      ...(least !== undefined && { least }),
    })
    return () => {
      const begun = this.struck[index]
      if (begun !== undefined && begun.until === undefined)
        this.struck[index] = { ...begun, until: this.now() }
    }
  }

  /** What was struck since there were so many did not come about. */
  absent(since: number): void {
    for (const [index, fault] of this.struck.entries())
      if (index >= since) this.struck[index] = { ...fault, absent: true }
  }

  /** What is not part of the history: renewals, writes. */
  note(
    event: Omit<TimelineEvent, 'at'>,
    when: { readonly at?: bigint; readonly remaining?: number } = {},
  ): void {
    const at = when.at === undefined ? this.now() : since(this.began, when.at)
    const validity = when.remaining === undefined ? {} : { validUntil: at + when.remaining }
    this.noted.push({ at, ...event, ...validity })
  }

  get faults(): readonly FaultRecord[] {
    return this.struck
  }

  get notes(): readonly TimelineEvent[] {
    return this.noted
  }

  timeline(): TimelineEvent[] {
    return [...timelineOf(this.history, this.began), ...this.noted].sort((a, b) => a.at - b.at)
  }
}
