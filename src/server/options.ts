import type { Store } from '../core/contract.ts'
import type { AuditSink } from './audit.ts'
import type { WishedLimits } from './limits.ts'
import type { ServerLog } from './problems.ts'

export interface ServerOptions {
  /** `host:port`, `[ipv6]:port` or `unix:/path`. Default `127.0.0.1:7420`. Port 0 takes any that is free. */
  readonly listen?: string | undefined
  /** Where the locks are. Default: in the server itself. Whoever passes a store closes it. */
  readonly store?: Store | undefined
  /**
   * The file in which a server with its own store remembers what it promised; its claims, when it is stopped, are in another
   * one beside it. Default: in the user's state folder, one
   * per address; none for port 0, where nobody could come back to it. `null`: none, and a restart forgets leases.
   */
  readonly state?: string | null | undefined
  /** PEM. */
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer } | undefined
  /** Who may do what; see `hashToken`. Without it everybody who can connect may do everything. */
  readonly tokensFile?: string | undefined
  /** Listen beyond this machine without TLS or without tokens: the network is trusted. */
  readonly insecure?: boolean | undefined
  /** Host names that requests may be addressed to, besides this machine's own. */
  readonly hosts?: readonly string[] | undefined
  /** Origins of web pages that may call. Default none. */
  readonly origins?: readonly string[] | undefined
  readonly limits?: WishedLimits | undefined
  /** A file for the audit log, or somebody who takes its entries. */
  readonly audit?: string | AuditSink | undefined
  /** Refuse to grant what cannot be recorded. */
  readonly auditRequired?: boolean | undefined
  /** Told of what goes wrong with the server itself, and of its recovery. */
  readonly log?: ServerLog | undefined
}

export const SERVER_OPTIONS: readonly (keyof ServerOptions)[] = [
  'listen',
  'store',
  'state',
  'tls',
  'tokensFile',
  'insecure',
  'hosts',
  'origins',
  'limits',
  'audit',
  'auditRequired',
  'log',
]

export interface ReloadOptions {
  /** PEM, as at the start. Absent: the certificate stays. */
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer } | undefined
}

/** What became of one part of a reload. */
export interface Reloaded {
  readonly part: 'tokens' | 'certificate' | 'audit'
  /** Why it stays as it was. */
  readonly error: Error | null
}

export interface CloseServerOptions {
  /** Milliseconds for requests that are being answered. Default 1000. */
  readonly grace?: number | undefined
}

export interface RunningServer {
  /** For `open`: `holdfast://127.0.0.1:7420`. */
  readonly url: string
  /** For curl: `http://127.0.0.1:7420`, or null on a unix socket. */
  readonly http: string | null
  /** Host and port, or path. */
  readonly address: string
  /** Milliseconds, at the start, until leases of a former run have ended and locks are granted. */
  readonly startsIn: number
  /** Resolves when locks are granted. */
  readonly ready: Promise<void>
  /**
   * Reads the tokens file again, takes up a new certificate, opens the audit log again. Each part by itself; what cannot be
   * used changes nothing, and is logged. Who has a token that is gone, or may do other things now, is disconnected.
   */
  reload(options?: ReloadOptions): readonly Reloaded[]
  /**
   * Sends waiters away and ends connections. A server with its own store and a state file writes its claims down, and the
   * next one with that file goes on with them; otherwise leases stay as they are until they run out.
   */
  close(options?: CloseServerOptions): Promise<void>
}
