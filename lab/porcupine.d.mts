import type { RunRecord } from '../src/lab/record.ts'
import type { Operation } from '../src/testkit/checkers/operation.ts'

export interface CallHistory {
  readonly id: string
  readonly kind: 'mutex' | 'read-write' | 'semaphore'
  readonly calls: readonly Operation[]
}

export function hasGo(): boolean
export function porcupine(): Promise<string>
export function askPorcupine(
  histories: readonly CallHistory[],
): Promise<readonly ('held' | 'broke' | 'unknown')[]>
export function withSecondOpinion(record: RunRecord): Promise<RunRecord>
