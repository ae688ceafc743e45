import type { ReleaseAnswer, ReleaseResult, RenewAnswer } from '../../core/contract.ts'

export const LOST: RenewAnswer = { kind: 'lost' }
export const NOT_HELD: ReleaseAnswer = { kind: 'not-held' }
export const RELEASED: ReleaseAnswer = { kind: 'released' }
export const withoutNext = (released: ReleaseAnswer): ReleaseResult => ({ released })
