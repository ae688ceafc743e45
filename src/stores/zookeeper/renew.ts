import type { RenewAnswer, RenewRequest } from '../../core/contract.ts'
import { LOST } from './answers.ts'
import type { Claim, ClaimHost } from './claim.ts'
import { ZooKeeperError } from './client/index.ts'
import type { ZkSession } from './zk-session.ts'
import { failed } from './failure.ts'

const LONGER = 'A lease cannot be renewed for longer than that: ask for the longer ttl when it is acquired.'

export interface RenewalTerms {
  /** Of each session, that it stands: one for all claims that are renewed together. */
  readonly proofs: Map<ZkSession, Promise<void>>
  readonly deadline: number
}

/** Makes sure that a claim's session and its nodes are there. */
export async function renewClaim(
  claim: Claim,
  request: RenewRequest,
  host: ClaimHost,
  { proofs, deadline }: RenewalTerms,
): Promise<RenewAnswer> {
  if (claim.state === 'leaving') return LOST
  const { zkSession } = claim
  // A waiter is there for as long as it asks, whether a server can be reached or not; a lease must be confirmed.
  if (claim.state === 'queued') claim.heard(request)
  try {
    if (!zkSession.connected) await zkSession.ready(deadline)
    // A session cannot be made longer, and no lease may be believed in for longer than its session.
    if (claim.state === 'held') zkSession.assertLasts(request.ttl, LONGER)
    if (claim.state === 'new')
      throw new ZooKeeperError('CONNECTION_LOSS', 'Where the claim stands is not known yet')
    if (!claim.pickUp()) {
      // By a majority, which decides over sessions: a server that has lost it goes on to answer for a while.
      let proof = proofs.get(zkSession)
      if (proof === undefined) proofs.set(zkSession, (proof = zkSession.zk.confirm(claim.dir)))
      const [, there] = await Promise.all([proof, claim.check()])
      if (!there) {
        host.vanished(claim)
        return LOST
      }
      if ((claim.state as string) === 'leaving') return LOST
    }
    const answer = await claim.renewed(request)
    host.ends(claim)
    return answer
  } catch (error) {
    return failed(error)
  }
}
