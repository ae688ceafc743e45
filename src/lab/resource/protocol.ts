import type { Decision } from './register.ts'

/** What clients say to the resource, one line of JSON each. Tokens travel as text: they are larger than JSON numbers. */
export type ResourceRequest =
  | {
      readonly id: number
      readonly do: 'read'
      readonly name: string
      readonly client: string
      readonly token: string
    }
  | {
      readonly id: number
      readonly do: 'write'
      readonly name: string
      readonly client: string
      readonly token: string
      /** What was read from each, to be written back with one more. Null: that one had refused the read. */
      readonly read: Reading
    }

/** The same number, kept by a resource that believes everybody and by one that checks tokens. Null: refused. */
export interface Reading {
  readonly unfenced: number | null
  readonly fenced: number | null
}

export type ResourceReply =
  | { readonly id: number; readonly reading: Reading }
  | { readonly id: number; readonly accepted: { readonly unfenced: boolean; readonly fenced: boolean } }

/** What the process that started the resource gets to know, over its own channel. */
export type FromResource =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'logs'; readonly logs: readonly RegisterLog[] }

export interface RegisterLog {
  readonly name: string
  readonly unfenced: readonly Decision[]
  readonly fenced: readonly Decision[]
  readonly final: { readonly unfenced: number; readonly fenced: number }
}
