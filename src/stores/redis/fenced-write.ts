import { checkPeriod } from '../../core/arguments.ts'
import { InvalidArgumentError, StoreUnavailableError } from '../../core/errors.ts'
import { withDriver } from './client/index.ts'
import type { RedisClient } from './client/index.ts'
import type { Driver } from './client/driver.ts'
import { plainError } from './failure.ts'
import { doneOf, listOf, textOf, unexpected } from './replies.ts'
import { runScript } from './run-script.ts'
import { scripts } from './scripts.gen.ts'
import { slotOf } from './slots.ts'

export interface FencedWriteOptions {
  /** Milliseconds to keep the value. Default: for ever. */
  readonly ttl?: number | undefined
  /** Milliseconds to remember the last token. Default: for ever. A token that is forgotten cannot refuse anything. */
  readonly fenceTtl?: number | undefined
}

export type FencedWriteResult =
  | { readonly accepted: true; readonly token: bigint }
  /** `token`: of the holder that wrote last. It came later than ours. */
  | { readonly accepted: false; readonly token: bigint }

const HIGHEST = 2n ** 64n - 1n

/**
 * Sets a key like SET does, but only if no later holder of the lock has written it: the one way to keep the write of a
 * holder out that was stopped for longer than its lease. The last token is kept in `<key>:fence`; in a Cluster the key
 * needs a hash tag, as all keys that belong together do.
 */
export async function fencedWrite(
  client: RedisClient,
  write: { readonly key: string; readonly value: string; readonly token: bigint },
  { ttl, fenceTtl }: FencedWriteOptions = {},
): Promise<FencedWriteResult> {
  const { key, value, token } = write
  if (typeof token !== 'bigint' || token < 0n || token > HIGHEST) {
    throw new InvalidArgumentError('token must be a bigint, as lease.token is', { argument: 'token' })
  }
  // Drivers write what is no text as something else, or as nothing, and JSON.stringify gives none for undefined.
  for (const [argument, text] of Object.entries({ key, value })) {
    if (typeof text !== 'string') throw new InvalidArgumentError(`${argument} must be a string`, { argument })
  }
  for (const [argument, ms] of Object.entries({ ttl, fenceTtl })) {
    if (ms !== undefined) checkPeriod(argument, ms)
  }
  const fence = `${key}:fence`
  const args = ['2', key, fence, String(token), value, String(ttl ?? 0), String(fenceTtl ?? 0)]
  return withDriver(client, (driver) => send(driver, key, fence, args))
}

async function send(
  driver: Driver,
  key: string,
  fence: string,
  args: readonly string[],
): Promise<FencedWriteResult> {
  if (driver.cluster && slotOf(driver.keyPrefix + key) !== slotOf(driver.keyPrefix + fence)) {
    throw new InvalidArgumentError('key must contain a hash tag in a Cluster, like {order:7}', {
      argument: 'key',
    })
  }
  try {
    const [accepted, last] = listOf(await runScript(driver, scripts.fencedWrite, args), 2)
    const token = textOf(last)
    if (!/^\d{1,20}$/.test(token)) throw unexpected()
    return { accepted: doneOf(accepted), token: BigInt(token) }
  } catch (error) {
    // Whether it was written is not known. To write it again with the same token does no harm.
    throw new StoreUnavailableError('The fenced write was not confirmed', {
      store: 'redis',
      cause: plainError(error),
    })
  }
}
