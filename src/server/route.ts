import type { IncomingMessage, ServerResponse } from 'node:http'

import type { MaybePromise } from '../core/contract.ts'
import type { Caller } from './caller.ts'

export interface Reply {
  readonly status: number
  /** JSON, unless it is text. */
  readonly body: unknown
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The client was gone before it got the answer. */
  readonly undelivered?: () => void
}

/** A request that has passed the gate. */
export interface Call {
  readonly caller: Caller
  readonly query: URLSearchParams
  /** What follows the path of a route that ends in a name, decoded. */
  readonly rest: string
  readonly body: unknown
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Called once when it is over: answered, or the client went away. */
  readonly onGone: (leave: () => void) => void
}

export interface Route {
  readonly method: 'GET' | 'POST'
  /** As in the OpenAPI file. `{name}` at the end takes everything that is left, slashes too. */
  readonly path: string
  /** `anybody`: without a token. */
  readonly access: 'anybody' | 'principals'
  /** Null: the handler has taken over the response. */
  handle(call: Call): MaybePromise<Reply | null>
}

export const ok = (body: unknown): Reply => ({ status: 200, body })
