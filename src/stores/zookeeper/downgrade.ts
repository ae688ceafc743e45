import type { DowngradeAnswer } from '../../core/contract.ts'
import { LOST } from './answers.ts'
import type { Claim, ClaimHost } from './claim.ts'
import { ZooKeeperError } from './client/index.ts'
import { QueueClaim } from './queue-claim.ts'
import { failed } from './failure.ts'

/** Has a writer go on as a reader. */
export async function downgradeClaim(
  claim: Claim | undefined,
  host: ClaimHost,
  deadline: number,
): Promise<DowngradeAnswer> {
  const held = (): boolean => claim?.state === 'held'
  try {
    if (claim === undefined || !held()) return LOST
    if (!(claim instanceof QueueClaim)) throw new ZooKeeperError('BAD_ARGUMENTS', 'Permits are no write lock')
    if (!claim.zkSession.connected) await claim.zkSession.ready(deadline)
    if (!held()) return LOST
    if (!(await claim.downgrade())) {
      if (held()) host.vanished(claim)
      return LOST
    }
    return held() ? { kind: 'downgraded' } : LOST
  } catch (error) {
    return failed(error)
  }
}
