import type { ClaimRef, RenewAnswer, RenewRequest, Unknown } from '../../core/contract.ts'
import type { Commands } from './commands.ts'
import { isTryAgain } from './failure.ts'
import { headerKey } from './keys.ts'
import type { Requests } from './requests.ts'
import { scripts } from './scripts.gen.ts'
import { DAY_MS, readKept } from './wire.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance } = globalThis

/** One may be left behind by a release that overtook its renewal. */
const MOST = 100_000

/**
 * Renewals in a Cluster whose slots move. As long as a slot is on its way, a script with several keys is refused (TRYAGAIN) if
 * one of them does not exist; and of a lock that nobody waits for, only the header does, or, in the minute after somebody gave up
 * waiting, two of three. To move a slot may take longer than a lease lasts. So what was not renewed is tried with the header
 * alone, which is enough for whoever holds everything.
 */
export class Moving {
  private readonly requests: Requests
  private readonly commands: Commands
  private readonly prefix: string
  /** Claims whose last renewal had no answer: a driver may try again by itself for longer than there is time. */
  private readonly doubtful = new Set<string>()

  constructor(requests: Requests, commands: Commands, prefix: string) {
    this.requests = requests
    this.commands = commands
    this.prefix = prefix
  }

  async renew(
    request: RenewRequest,
    timeout: number,
    usual: (timeout: number) => Promise<RenewAnswer>,
  ): Promise<RenewAnswer> {
    const { id } = request
    const began = performance.now()
    const left = (): number => Math.max(1, timeout - (performance.now() - began))
    if (request.tokens > 0) return usual(timeout)
    if (!this.doubtful.has(id)) {
      const answer = await usual(timeout)
      if (answer.kind !== 'unknown') return answer
      if (this.doubtful.size >= MOST) this.doubtful.clear()
      this.doubtful.add(id)
      return isTryAgain(answer.cause) ? ((await this.keep(request, left())) ?? answer) : answer
    }
    const kept = await this.keep(request, timeout)
    if (kept !== null) return kept
    this.doubtful.delete(id)
    return usual(left())
  }

  forget({ id }: ClaimRef): void {
    this.doubtful.delete(id)
  }

  /** `null`: it is not such a lock, or not ours. */
  private async keep({ name, id, ttl }: RenewRequest, timeout: number): Promise<RenewAnswer | null> {
    const args = ['1', headerKey(this.prefix, name), String(ttl + DAY_MS), id, '1']
    const late = (): void => this.commands.noAnswer(name, timeout)
    const ask = async (): Promise<(RenewAnswer | null)[]> =>
      readKept(await this.commands.run(scripts.keep, args), 1)
    const answer: (RenewAnswer | null)[] | Unknown = await this.requests.ask(ask, timeout, late)
    if ('kind' in answer) return answer
    this.commands.heardFrom(name)
    return answer[0] ?? null
  }
}
