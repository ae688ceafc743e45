import { KNOWN_MS, LONGEST_TTL } from '../bounds.ts'
import type { Finding, Trace } from '../trace.ts'

/** Its next renewal tells a holder that its claim was taken away; one that is not renewed ends by itself. */
const TOLD_MS = LONGEST_TTL + KNOWN_MS

/** Whoever a lock is taken from hears of it, and does not go on. */
export function taken({ forced, grants, endedAt }: Trace): readonly Finding[] {
  return forced.flatMap(({ name, from, to }) =>
    grants.flatMap((grant): Finding[] => {
      const { process, to: until = endedAt } = grant
      // Granted while somebody looked who holds it: whether it was meant, only the store knows.
      if (grant.name !== name || grant.from > from - KNOWN_MS || until <= to + TOLD_MS) return []
      const message = `p${process} went on with "${name}" until ${until}, and it was taken away by ${to}`
      return [{ check: 'signal', message }]
    }),
  )
}
