import { PolledDriver } from './polled.ts'

/** The parts of a `GlideClient` of `@valkey/valkey-glide` that the store uses. */
export interface GlideClient {
  customCommand(args: string[], options?: { decoder?: number }): Promise<unknown>
  close(message?: string): void
}

/** `Decoder.String` of the package: whatever the client's own default is. */
const TEXTS = { decoder: 1 }

export function isGlide(client: object): client is GlideClient {
  const { customCommand, close } = client as Record<string, unknown>
  // A Batch has the one, and not the other.
  return typeof customCommand === 'function' && typeof close === 'function'
}

/** Of the clients only this one knows channels of shards. */
export function isGlideCluster(client: object): boolean {
  return 'pubsubShardChannels' in client
}

/** Subscriptions are made with the client, and are its owner's: there are none here. */
export class GlideDriver extends PolledDriver {
  readonly connectionless = false
  private readonly client: GlideClient

  constructor(client: GlideClient) {
    super()
    this.client = client
  }

  ended(): boolean {
    return (this.client as { isClosed?: unknown }).isClosed === true
  }

  evalsha(args: string[]): Promise<unknown> {
    return this.run(['evalsha', ...args])
  }

  eval(args: string[]): Promise<unknown> {
    return this.run(['eval', ...args])
  }

  protected async run(words: readonly string[]): Promise<unknown> {
    try {
      return flat(await this.client.customCommand([...words], TEXTS))
    } catch (error) {
      throw inServersWords(error)
    }
  }
}

/** Maps come as a list of their entries. */
function flat(reply: unknown): unknown {
  return Array.isArray(reply) && reply.every(isEntry)
    ? reply.flatMap(({ key, value }) => [key, value])
    : reply
}

const isEntry = (item: unknown): item is { key: unknown; value: unknown } =>
  typeof item === 'object' && item !== null && 'key' in item && 'value' in item

/** What the driver calls the errors that it knows. */
const WORDS: Readonly<Record<string, string>> = {
  ResponseError: 'ERR',
  NoScriptError: 'NOSCRIPT',
  BusyLoadingError: 'LOADING',
  ExecAbortError: 'EXECABORT',
  PermissionDenied: 'NOPERM',
}
const CONNECTING = /^.*Received error for address `[^`]*`: /s
const KNOWN = /^An error was signalled by the server: - (\w+): /
const OTHER = /^([A-Z][A-Z0-9]+): /

function inServersWords(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  // Its own time was up, and the command may still be under way.
  if (error.name === 'TimeoutError') return new Error('Command timed out')
  return new Error(
    error.message
      .replace(CONNECTING, '')
      .replace(KNOWN, (_, word: string) => `${WORDS[word] ?? word.toUpperCase()} `)
      .replace(OTHER, '$1 '),
  )
}
