import type { ClaimRef } from '../../core/contract.ts'
import type { Command } from './command.ts'

interface Late extends ClaimRef {
  /** Whoever asked for it has given it up meanwhile. */
  givenUp: boolean
  /** The driver will not tell what became of it, and may still send it. */
  untold: boolean
}

/**
 * Claims that were not answered in time, and that the driver has not let go of. One that repeats its commands after a
 * reconnect, for ever if it was told so, may send such a claim when the clean-up for it has long stopped: then it would be
 * granted, for nobody. So when its answer comes after all and the claim was given up before, it is withdrawn. If no answer will
 * come, because the driver's own time for it was up (`commandTimeout`), any other answer or a new connection does: the driver
 * sends in order.
 */
export class Resent {
  private readonly withdraw: (claim: ClaimRef) => void
  private readonly late = new Map<string, Late>()
  private untold = 0

  constructor(withdraw: (claim: ClaimRef) => void) {
    this.withdraw = withdraw
  }

  asked({ id, kind }: Command<unknown>): void {
    if (this.late.size === 0) return
    const late = this.late.get(id)
    // The same claim again is one that is wanted again.
    if (late !== undefined) late.givenUp = kind === 'w' || kind === 'r' || kind === 'R'
  }

  notAnswered(command: Command<unknown>): void {
    const id = claimedBy(command)
    if (id !== undefined && !this.late.has(id))
      this.late.set(id, { name: command.name, id, givenUp: false, untold: false })
  }

  /** The driver has failed these for want of an answer, and has not forgotten them. Whether any of them is a claim. */
  timedOut(lot: readonly Command<unknown>[]): boolean {
    for (const command of lot) {
      this.notAnswered(command)
      const late = this.late.get(claimedBy(command) ?? '')
      if (late?.untold !== false) continue
      late.untold = true
      this.untold++
    }
    return this.untold > 0
  }

  /** The driver has sent whatever it had: what it does not tell of is known now. Whether there is more to come. */
  sentAll(): boolean {
    if (this.untold === 0) return false
    for (const late of this.late.values()) if (late.untold && late.givenUp) this.end(late, true)
    return this.untold > 0
  }

  /** The driver is done with these: they were answered, or failed. */
  over(lot: readonly Command<unknown>[], answered: boolean): void {
    if (this.late.size === 0) return
    for (const command of lot) {
      const late = this.late.get(claimedBy(command) ?? '')
      if (late !== undefined) this.end(late, answered)
    }
    if (answered) this.sentAll()
  }

  private end(late: Late, answered: boolean): void {
    this.late.delete(late.id)
    if (late.untold) this.untold--
    if (answered && late.givenUp) this.withdraw(late)
  }
}

/** The id of the claim that a command asks for. */
function claimedBy(command: Command<unknown>): string | undefined {
  if (command.claims) return command.id
  return command.kind === 'R' ? command.terms.slice(1, command.terms.indexOf(' ')) : undefined
}
