import type { Store, StoreEvent } from '../core/contract.ts'

/** Methods that travel. `unwatch` ends a watch; `close` stays at home. */
export type SocketMethod = Exclude<keyof Store, 'kind' | 'capabilities' | 'close'> | 'unwatch'

export interface SocketCall {
  readonly id: number
  readonly method: SocketMethod
  readonly args: readonly unknown[]
}

/** What comes back: an answer to a call, or an event for a session. */
export type SocketReply =
  | { readonly id: number; readonly answer: unknown }
  | { readonly session: string; readonly event: StoreEvent }

interface Tagged {
  readonly bigint: string
}

/** One message per line; bigints are tagged. */
export function encode(message: unknown): string {
  const text = JSON.stringify(message, (_, value: unknown) => {
    if (typeof value === 'bigint') return { bigint: value.toString() } satisfies Tagged
    return value instanceof Error ? String(value) : value
  })
  return `${text}\n`
}

export function decode(line: string): unknown {
  return JSON.parse(line, (_, value: unknown) => {
    const tagged = typeof value === 'object' && value !== null && 'bigint' in value
    return tagged ? BigInt((value as Tagged).bigint) : value
  })
}

/** Cuts a stream into lines, wherever its packets end. */
export class Lines {
  private rest: Buffer = Buffer.alloc(0)

  take(chunk: Buffer): string[] {
    let bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    const lines: string[] = []
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10)) {
      lines.push(bytes.toString('utf8', 0, end))
      bytes = bytes.subarray(end + 1)
    }
    this.rest = bytes
    return lines
  }
}
