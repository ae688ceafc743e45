import type { Target } from './case.ts'
import { casesFor } from './conformance.ts'
import { CASE_TIMEOUT_MS, report, titleOf } from './report.ts'

export interface NodeTestContext {
  skip(message?: string): void
}

/** What is used of node:test, which is passed in like any other runner. */
export interface NodeTestRunner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (
    name: string,
    options: { readonly timeout: number },
    body: (context: NodeTestContext) => Promise<void>,
  ) => unknown
}

/** All conformance cases of a target as a node:test suite. */
export function nodeTestConformance({ describe, it }: NodeTestRunner, target: Target): void {
  describe(`${target.name} keeps the store contract`, () => {
    for (const testCase of casesFor(target)) {
      const options = { timeout: CASE_TIMEOUT_MS }
      it(titleOf(testCase), options, (context) => report(testCase, target, (reason) => context.skip(reason)))
    }
  })
}
