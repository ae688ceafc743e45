import { isNoScript } from './failure.ts'
import type { Link } from './link.ts'
import type { Script } from './scripts.gen.ts'

/** Runs a script by its hash, or by its text where the server does not know it. `args`: number of keys, keys, arguments. */
export async function runScript(
  link: Link,
  { sha1, lua }: Script,
  args: readonly string[],
): Promise<unknown> {
  try {
    return await link.evalsha([sha1, ...args])
  } catch (error) {
    if (!isNoScript(error)) throw error
    return link.eval([lua, ...args])
  }
}
