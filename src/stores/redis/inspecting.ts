import type { NameInfo } from '../../core/contract.ts'
import { isOnItsWay } from './failure.ts'
import { keysOf } from './keys.ts'
import type { Link } from './link.ts'
import { runScript } from './run-script.ts'
import { scripts } from './scripts.gen.ts'
import { readName } from './wire.ts'

/** Who holds a name and who waits for it. While its slot moves the header alone is asked, which is all that most locks have: see moving.ts. */
export async function inspectName(link: Link, prefix: string, name: string): Promise<NameInfo> {
  const keys = keysOf(prefix, name)
  const reply = await runScript(link, scripts.inspect, ['3', ...keys]).catch((error: unknown) => {
    if (!isOnItsWay(error)) throw error
    return runScript(link, scripts.inspect, ['1', keys[0]])
  })
  return readName(name, reply)
}
