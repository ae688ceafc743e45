import { isNoScript } from './failure.ts'
import type { Driver } from './client/driver.ts'
import type { Script } from './scripts.gen.ts'

/** Runs a script by its hash, or by its text where the server does not know it. `args`: number of keys, keys, arguments. */
export async function runScript(
  driver: Driver,
  { sha1, lua }: Script,
  args: readonly string[],
): Promise<unknown> {
  try {
    return await driver.evalsha([sha1, ...args])
  } catch (error) {
    if (!isNoScript(error)) throw error
    return driver.eval([lua, ...args])
  }
}
