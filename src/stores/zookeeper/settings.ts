import type { Acl } from './client/index.ts'
import type { Source } from './zk-sessions.ts'

export interface StoreSettings {
  readonly source: Source
  /** The directory of all locks, absolute. */
  readonly root: string
  readonly acl: readonly Acl[]
  /** The longest session that the servers allow. */
  readonly maxSessionTimeout: number
  /** Open a session for claims of this ttl at once. */
  readonly ttl: number | undefined
  readonly onRevocation: ((name: string) => void) | undefined
}
