import type { Case, Target } from './case.ts'
import { TargetContext } from './context.ts'
import { abilitiesOf, assertStated, whyNot } from './needs.ts'
import { VirtualEnv } from './virtual-env.ts'

export type CaseResult =
  | { readonly status: 'passed' }
  | { readonly status: 'not applicable'; readonly reason: string }
  | { readonly status: 'failed'; readonly error: unknown }

/** Runs one case against one target. Never rejects. Drives the target's clock if it is a virtual one. */
export async function runCase(testCase: Case, target: Target): Promise<CaseResult> {
  const result = attempt(testCase, target)
  if (!(target.env instanceof VirtualEnv)) return result
  try {
    return await target.env.until(result)
  } catch (cause) {
    return { status: 'failed', error: new Error(`${testCase.id} never came to its end`, { cause }) }
  }
}

async function attempt(testCase: Case, target: Target): Promise<CaseResult> {
  const without = whyNot(testCase, target, target.abilities)
  if (without !== null) return { status: 'not applicable', reason: without }
  try {
    const { capabilities, abilities } = await abilitiesOf(target)
    assertStated(target, abilities)
    const reason = whyNot(testCase, target, abilities)
    if (reason !== null) return { status: 'not applicable', reason }
    const ctx = new TargetContext(target, capabilities)
    const error = await failureOf(testCase, ctx)
    // First what the store did wrong by itself: what came of that says less.
    const [fault = error] = ctx.faults
    return fault === undefined ? { status: 'passed' } : { status: 'failed', error: fault }
  } catch (error) {
    return { status: 'failed', error }
  }
}

async function failureOf(testCase: Case, ctx: TargetContext): Promise<unknown> {
  try {
    try {
      await testCase.run(ctx)
    } finally {
      await ctx.close()
    }
    return undefined
  } catch (error) {
    return error ?? new Error('rejected with nothing')
  }
}
