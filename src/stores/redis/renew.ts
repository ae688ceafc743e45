import type { RenewAnswer, RenewRequest, Unknown } from '../../core/contract.ts'
import type { Commands } from './commands.ts'
import { isCrossSlot, isForbiddenKey } from './failure.ts'
import { headerKey } from './keys.ts'
import type { Requests } from './requests.ts'
import { runScript } from './run-script.ts'
import { scripts } from './scripts.gen.ts'
import { DAY_MS, readKept } from './wire.ts'

/** Few enough for the server to be free for others after a millisecond. */
const MOST_AT_ONCE = 250

/**
 * Renewals by the hundred. Ten thousand leases of three seconds are ten thousand renewals a second, and nearly all of
 * them are of one holder with nobody behind it: for those one script, one promise and one deadline serve hundreds.
 */
export class Renewals {
  private readonly requests: Requests
  private readonly commands: Commands
  private readonly prefix: string

  constructor(requests: Requests, commands: Commands, prefix: string) {
    this.requests = requests
    this.commands = commands
    this.prefix = prefix
  }

  /** `null` stands for each one that has to be asked about by itself. */
  async renew(requests: readonly RenewRequest[], timeout: number): Promise<(RenewAnswer | null)[]> {
    const lots: Promise<readonly (RenewAnswer | null)[]>[] = []
    for (let at = 0; at < requests.length;) {
      const size = lotSize(requests, at)
      lots.push(this.renewLot(requests.slice(at, at + size), timeout))
      at += size
    }
    return (await Promise.all(lots)).flat()
  }

  private async renewLot(
    lot: readonly RenewRequest[],
    timeout: number,
  ): Promise<readonly (RenewAnswer | null)[]> {
    const [first] = lot
    if (first === undefined || first.tokens > 0 || this.commands.oneSlot) return lot.map(() => null)
    const args = [String(lot.length)]
    for (const { name } of lot) args.push(headerKey(this.prefix, name))
    args.push(String(first.ttl + DAY_MS))
    for (const { id } of lot) args.push(id)
    const late = (): void => this.commands.noAnswer(first.name, timeout)
    const reply = await this.requests.ask(() => this.keep(args, lot), timeout, late)
    if ('kind' in reply) {
      if (!isCrossSlot(reply.cause) && !isForbiddenKey(reply.cause)) return lot.map(() => reply)
      this.commands.oneSlot ||= isCrossSlot(reply.cause)
      return lot.map(() => null)
    }
    this.commands.heardFrom(first.name)
    return reply
  }

  private async keep(
    args: string[],
    lot: readonly RenewRequest[],
  ): Promise<readonly (RenewAnswer | null)[] | Unknown> {
    const { role } = this.commands
    if (role.due) role.look()
    const kept = readKept(await runScript(this.requests.driver, scripts.keep, args), lot.length)
    const problem = role.sure ? undefined : await role.confirmed()
    if (problem !== undefined) this.commands.disbelieved(lot[0]?.name ?? '', problem)
    return problem ?? kept
  }
}

/** Those that follow each other with one ttl and want no tokens. */
function lotSize(requests: readonly RenewRequest[], from: number): number {
  const first = requests[from]
  let size = 1
  while (size < MOST_AT_ONCE) {
    const next = requests[from + size]
    if (next === undefined || next.ttl !== first?.ttl || next.tokens > 0 !== first.tokens > 0) break
    size++
  }
  return size
}
