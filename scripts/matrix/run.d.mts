export interface Counts {
  passed: number
  failed: number
  skipped: number
}

/** What a file of tests is about. */
export function suiteOf(path: string): string

/** Of Vitest's JSON report. */
export function count(report: {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}): { suites: Record<string, Counts>; failures: string[] }
