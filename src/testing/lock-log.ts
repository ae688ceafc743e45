import { AssertionError } from 'node:assert'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'

import type { LockEvents } from '../runtime/events.ts'

/** One time that the code under test had a lock. Times are milliseconds. */
export interface LockRecord {
  readonly name: string
  readonly token: bigint
  /** How long it stood in line. */
  readonly waited: number
  readonly state: 'held' | 'released' | 'lost'
  /** Once it was lost: why. */
  readonly reason?: string
}

type Kind = 'acquired' | 'released' | 'lost'
type Ended = LockEvents['released'] & { readonly reason?: string }

/** What became of the locks of one store, from the events that programs log. */
export class LockLog {
  readonly records: LockRecord[] = []
  private readonly store: string
  private readonly listeners: readonly [string, (message: unknown) => void][]

  constructor(store: string) {
    this.store = store
    const on = <K extends Kind>(
      kind: K,
      note: (event: LockEvents[K]) => void,
    ): [string, (message: unknown) => void] => {
      const listener = (message: unknown): void => {
        const event = message as LockEvents[K]
        if (event.store === this.store) note(event)
      }
      subscribe(`holdfast:${kind}`, listener)
      return [`holdfast:${kind}`, listener]
    }
    this.listeners = [
      on('acquired', ({ name, token, waited }) => {
        this.records.push({ name, token, waited, state: 'held' })
      }),
      on('released', (event) => this.ended('released', event)),
      on('lost', (event) => this.ended('lost', event)),
    ]
  }

  stop(): void {
    for (const [channel, listener] of this.listeners) unsubscribe(channel, listener)
  }

  get held(): readonly LockRecord[] {
    return this.records.filter(({ state }) => state === 'held')
  }

  /** Throws what every runner shows as a failed assertion. */
  fail(problem: string): never {
    const told = this.records.map(({ name, state }) => `"${name}" (${state})`)
    const message = `${problem} Locked so far: ${told.length > 0 ? told.join(', ') : 'nothing'}.`
    throw new AssertionError({ message })
  }

  private ended(state: 'released' | 'lost', { name, token, reason }: Ended): void {
    const at = this.records.findIndex((one) => one.name === name && one.token === token)
    const record = this.records[at]
    if (record?.state !== 'held') return
    this.records[at] = { ...record, state, ...(reason !== undefined && { reason }) }
  }
}
