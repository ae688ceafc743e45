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
  private readonly struck: FaultRecord[] = []
  private readonly noted: TimelineEvent[] = []

  /** A recorder for a client that lives in this process. */
  recorder(client: string): Recorder {
    return new Recorder(client, { onEvent: (event) => void this.history.push(event) })
  }

  now(): At {
    return since(this.began, process.hrtime.bigint())
  }

  /** Something that is over as soon as it is done. */
  fault(kind: string, target: string, detail?: string): void {
    this.struck.push({ at: this.now(), kind, target, ...(detail === undefined ? {} : { detail }) })
  }

  /** Something that lasts until it is taken back. */
  faultBegins(kind: string, target: string, detail?: string): EndFault {
    const index = this.struck.length
    this.fault(kind, target, detail)
    return () => {
      const begun = this.struck[index]
      if (begun !== undefined && begun.until === undefined)
        this.struck[index] = { ...begun, until: this.now() }
    }
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

  timeline(): TimelineEvent[] {
    return [...timelineOf(this.history, this.began), ...this.noted].sort((a, b) => a.at - b.at)
  }
}
