import type { Case, Target } from './case.ts'
import { runCase } from './run-case.ts'

/** The longest that one case may take: some wait for leases to run out, and for processes to start. */
export const CASE_TIMEOUT_MS = 60_000

export function titleOf({ id, title }: Case): string {
  return `${id}: ${title}`
}

/** Runs a case; throws when it failed, and calls `skip` when it does not apply. */
export async function report(testCase: Case, target: Target, skip: (reason: string) => void): Promise<void> {
  const result = await runCase(testCase, target)
  if (result.status === 'failed') throw result.error
  if (result.status === 'not applicable') skip(`not applicable: ${result.reason}`)
}
