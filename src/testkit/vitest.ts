import type { Target } from './case.ts'
import { casesFor } from './conformance.ts'
import { CASE_TIMEOUT_MS, report, titleOf } from './report.ts'

export interface VitestContext {
  readonly skip: (note?: string) => unknown
}

/** What is used of vitest, which is passed in: this package does not depend on it. */
export interface VitestRunner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (name: string, body: (context: VitestContext) => Promise<void>, timeout?: number) => unknown
}

/** All conformance cases of a target as a vitest suite. */
export function vitestConformance({ describe, it }: VitestRunner, target: Target): void {
  describe(`${target.name} keeps the store contract`, () => {
    for (const testCase of casesFor(target)) {
      it(
        titleOf(testCase),
        ({ skip }) => report(testCase, target, (reason) => void skip(reason)),
        CASE_TIMEOUT_MS,
      )
    }
  })
}
