import type { Capabilities } from '../core/contract.ts'
import type { Case, Need, Target } from './case.ts'
import { checkedStore } from './checked-store.ts'
import { TargetContext } from './context.ts'
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
  const exception = target.exceptions?.[testCase.id]
  if (exception !== undefined) return { status: 'not applicable', reason: exception }
  try {
    const abilities = await abilitiesOf(target)
    const missing = testCase.needs.filter((need) => !has(need, target, abilities))
    if (missing.length > 0) return { status: 'not applicable', reason: `needs ${missing.join(', ')}` }
    const ctx = new TargetContext(target, abilities.capabilities)
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

interface Abilities {
  readonly capabilities: Capabilities
  readonly downgrade: boolean
}

async function abilitiesOf(target: Target): Promise<Abilities> {
  const opened = await target.createStore()
  const { capabilities, downgrade } = checkedStore(opened)
  await opened.close()
  return { capabilities, downgrade: capabilities.shared && downgrade !== undefined }
}

function has(need: Need, target: Target, { capabilities, downgrade }: Abilities): boolean {
  switch (need) {
    case 'queue':
    case 'shared':
    case 'permits':
      return capabilities[need]
    case 'downgrade':
      return downgrade
    case 'no downgrade':
      return !downgrade
    case 'no queue':
      return !capabilities.queue
    case 'no shared':
      return !capabilities.shared
    case 'no permits':
      return !capabilities.permits
    case 'push':
      return capabilities.wakeups === 'push'
    case 'monotonic tokens':
      return capabilities.fencing === 'monotonic'
    case 'processes':
      return target.module !== undefined && capabilities.reach !== 'process'
    case 'proxy':
      return target.proxied !== undefined
    case 'restart':
      return target.restart !== undefined
  }
}
