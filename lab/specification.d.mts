import type { Outcome, RunRecord } from '../src/lab/record.ts'

export interface Variant {
  readonly id: string
  readonly title: string
  readonly breaks?: string
}

export const VARIANTS: readonly Variant[]
export function missingTlc(): string | undefined
export function checkVariant(variant: Variant): Promise<RunRecord>
export function verdictOf(said: string): {
  readonly seen: Outcome
  readonly why: string
  readonly by?: string
}
