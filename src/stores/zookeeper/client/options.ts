import type { ConnectionOptions } from 'node:tls'
import type { ZooKeeperError } from './errors.ts'
import type { Created } from './operations.ts'
import type { Acl, CreateMode, Stat } from './records.ts'
import type { AuthInfo, SessionState } from './session.ts'
import type { Watcher } from './watches.ts'

export interface ZooKeeperOptions {
  /** Milliseconds that the servers keep the session, and its ephemeral nodes, without hearing from it. Default 30,000. */
  readonly sessionTimeout?: number | undefined
  /** Below which node all paths lie. Default: what the connect string says. */
  readonly chroot?: string | undefined
  readonly auth?: readonly AuthInfo[] | undefined
  /** TLS, with these settings. */
  readonly tls?: ConnectionOptions | undefined
  /** Bytes of the largest request; that of the servers (`jute.maxbuffer`). Default 1 MB. */
  readonly maxRequest?: number | undefined
  /** Bytes of the largest reply. Default 16 MB. */
  readonly maxReply?: number | undefined
  /** `true`: the open session does not keep the process alive. */
  readonly background?: boolean | undefined
  /** The number of a connection's first request; for tests. */
  readonly firstXid?: number | undefined
}

export interface CreateOptions {
  readonly mode?: CreateMode | undefined
  readonly data?: Uint8Array | string | undefined
  readonly acl?: readonly Acl[] | undefined
  /** Milliseconds; for the two modes with a ttl. */
  readonly ttl?: number | undefined
}

export interface ReadOptions {
  /** Called once, at the first change after the reply. */
  readonly watch?: Watcher | undefined
}

export type StateListener = (state: SessionState, error: ZooKeeperError | undefined) => void

/** A part of `transaction`. */
export type Write =
  | ({ readonly kind: 'create'; readonly path: string } & CreateOptions)
  | { readonly kind: 'delete'; readonly path: string; readonly version?: number }
  | {
      readonly kind: 'setData'
      readonly path: string
      readonly data: Uint8Array | string
      readonly version?: number
    }
  | { readonly kind: 'check'; readonly path: string; readonly version: number }

/** A write for `write`. */
export type SingleWrite =
  | {
      readonly kind: 'create'
      readonly path: string
      readonly mode?: 'persistent' | 'persistent-sequential' | 'ephemeral' | 'ephemeral-sequential'
      readonly data?: Uint8Array | string
      readonly acl?: readonly Acl[]
      /** No other node of the same directory may have the same `czxid`. */
      readonly unique?: boolean
    }
  | { readonly kind: 'delete'; readonly path: string; readonly version?: number }

/** What a part did: the created node (servers may leave its Stat out), the new Stat of changed data, nothing for the others. */
export type WriteResult = (Pick<Created, 'path'> & Partial<Created>) | Stat | undefined
