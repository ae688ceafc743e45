import { createInterface } from 'node:readline/promises'
import type { Readable, Writable } from 'node:stream'
import { isLoopback } from '../../lab/live/url.ts'
import { UsageError } from '../exit.ts'
import type { StoreAddress } from '../store-option.ts'

export interface ConsentOptions {
  /** Agreed to on the command line. */
  readonly yes: boolean
  /** The terminal to ask at; for tests. */
  readonly input?: Readable & { readonly isTTY?: boolean }
  readonly output?: Writable & { readonly isTTY?: boolean }
}

/** What is not on this machine may be somebody's production. Nothing is done there that nobody has agreed to. */
export async function consent(
  { url, shown }: StoreAddress,
  what: string,
  { yes, input = process.stdin, output = process.stderr }: ConsentOptions,
): Promise<void> {
  if (yes || isLoopback(url)) return
  if (input.isTTY !== true || output.isTTY !== true) {
    throw new UsageError(`${shown} is not on this machine. ${what} Say --yes if that is meant.`)
  }
  const terminal = createInterface({ input, output })
  const answer = await terminal
    .question(`${shown} is not on this machine.\n${what}\nGo on? [y/N] `)
    .finally(() => terminal.close())
  if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError('Nothing was done.')
}
