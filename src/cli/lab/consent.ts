import { createInterface } from 'node:readline/promises'
import { isLoopback } from '../../lab/live/url.ts'
import { UsageError } from '../exit.ts'
import type { StoreAddress } from '../store-option.ts'

/** What is not on this machine may be somebody's production. Nothing is done there that nobody has agreed to. */
export async function consent({ url, shown }: StoreAddress, what: string, yes: boolean): Promise<void> {
  if (yes || isLoopback(url)) return
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError(`${shown} is not on this machine. ${what} Say --yes if that is meant.`)
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal
    .question(`${shown} is not on this machine.\n${what}\nGo on? [y/N] `)
    .finally(() => terminal.close())
  if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError('Nothing was done.')
}
