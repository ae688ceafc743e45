import { nemesis, NEMESES } from '../../lab/live/nemeses/index.ts'
import type { Nemesis } from '../../lab/live/nemesis.ts'
import { UsageError } from '../exit.ts'

/** What the lab does to its own clients and their connections. The server is somebody else's. */
export const FAULTS: readonly string[] = NEMESES.map(({ kind }) => kind).filter(
  (kind) => !/^(server-|restart|wipe|clock|script|client-|failover)/.test(kind),
)

/** `pause,kill,cut`. */
export function parseFaults(text: string): readonly Nemesis[] {
  const kinds = [...new Set(text.split(',').map((word) => word.trim()))]
  return kinds.map((kind) => {
    const found = FAULTS.includes(kind) ? nemesis(kind) : undefined
    if (found === undefined) throw new UsageError(`--faults knows ${FAULTS.join(', ')}; got "${kind}"`)
    return found
  })
}
