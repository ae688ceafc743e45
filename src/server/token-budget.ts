import type { Principal } from './rights.ts'

/** As many as the clock has microseconds, which tokens follow: so no name's tokens run ahead of it. */
const PER_MS = 1000
const AT_ONCE = 1_000_000

interface Budget {
  left: number
  at: number
}

/**
 * Tokens for one principal. A claim may ask for a block of them, for hand-overs that nobody sees; whoever asked for blocks
 * without end would use up those of everybody. Beyond the budget, a grant has one.
 */
export class TokenBudget {
  private readonly now: () => number
  private readonly budgets = new WeakMap<Principal, Budget>()

  constructor(now: () => number = () => performance.now()) {
    this.now = now
  }

  /** How many of the wished ones there are. */
  take(principal: Principal, wished: number): number {
    if (wished <= 1) return wished
    const now = this.now()
    let budget = this.budgets.get(principal)
    if (budget === undefined) this.budgets.set(principal, (budget = { left: AT_ONCE, at: now }))
    budget.left = Math.min(AT_ONCE, budget.left + (now - budget.at) * PER_MS)
    budget.at = now
    const given = Math.max(1, Math.min(wished, Math.floor(budget.left)))
    budget.left = Math.max(0, budget.left - given)
    return given
  }
}
