import { platform } from '#platform'

import type { Channel } from '../platform/platform.ts'

/**
 * What happens to locks, on `node:diagnostics_channel` under `holdfast:<kind>`. Costs a property read while nobody listens.
 * Times are milliseconds. The claim's id is a secret and never part of an event.
 */
export interface LockEvents {
  /** A task starts to wait: the lock was not free, or is being asked for. */
  waiting: { readonly name: string; readonly store: string }
  acquired: { readonly name: string; readonly store: string; readonly token: bigint; readonly waited: number }
  renewed: { readonly name: string; readonly store: string; readonly took: number }
  /** A writer's lease is a reader's from now on. */
  downgraded: { readonly name: string; readonly store: string; readonly token: bigint; readonly took: number }
  /** A renewal failed; the lease ends after `remaining` unless one succeeds. */
  'at-risk': {
    readonly name: string
    readonly store: string
    readonly remaining: number
    readonly cause: unknown
  }
  lost: {
    readonly name: string
    readonly store: string
    readonly token: bigint
    readonly held: number
    readonly reason: string
  }
  released: { readonly name: string; readonly store: string; readonly token: bigint; readonly held: number }
}

type Channels = { readonly [K in keyof LockEvents]: Channel<LockEvents[K]> }

export const events: Channels = {
  waiting: platform.channel('holdfast:waiting'),
  acquired: platform.channel('holdfast:acquired'),
  renewed: platform.channel('holdfast:renewed'),
  downgraded: platform.channel('holdfast:downgraded'),
  'at-risk': platform.channel('holdfast:at-risk'),
  lost: platform.channel('holdfast:lost'),
  released: platform.channel('holdfast:released'),
}
