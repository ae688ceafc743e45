import type { Holdfast } from '../locks/holdfast.ts'
import type { Store } from '../core/contract.ts'
import { open, openStore } from '../open.ts'
import type { StoreOptions } from '../open.ts'
import { CommandError, EXIT, UsageError } from './exit.ts'
import type { StoreAddress } from './store-option.ts'

/** The store alone, whatever its reach. */
export function storeAt(address: StoreAddress): Promise<Store> {
  return openStore(address.url, credentialsOf(address))
}

export function credentialsOf({ token, ca }: StoreAddress): StoreOptions {
  return { ...(token === undefined ? {} : { token }), ...(ca === undefined ? {} : { ca }) }
}

/** Opens the store for a command. One that lives in this process alone would lock nothing for anybody. */
export async function connect(address: StoreAddress): Promise<Holdfast> {
  const { url, shown } = address
  const holdfast = await open(url, credentialsOf(address))
  if (holdfast.store.capabilities.reach === 'process') {
    await holdfast.close()
    throw new UsageError(
      `${shown} lives inside one process: no other could see its locks. Use a store that is shared.`,
    )
  }
  return holdfast
}

/** How long the end of a command may wait for a store that does not answer. What is left there runs out by itself. */
const LEAVE_MS = 2000

export async function leave(holdfast: Holdfast, timeout: number = LEAVE_MS): Promise<void> {
  // Whatever the command held, it is done with.
  await holdfast.close({ drain: 0, timeout }).catch(() => {})
}

/** A command that only looks has nothing to give back. */
const LOOKED_MS = 200

/** Runs the body with the store open for a look, and closes it whatever happens. */
export async function withStore<T>(
  address: StoreAddress,
  body: (holdfast: Holdfast) => Promise<T>,
): Promise<T> {
  const holdfast = await connect(address)
  try {
    return await body(holdfast)
  } finally {
    await leave(holdfast, LOOKED_MS)
  }
}

export function systemError(what: string, error: unknown): CommandError {
  const reason = error instanceof Error ? error.message : String(error)
  return new CommandError(`${what}: ${reason}`, EXIT.system)
}
