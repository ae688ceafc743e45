import type { Lost, ReleaseAnswer, ReleaseResult } from '../../core/contract.ts'

export const LOST: Lost = { kind: 'lost' }
export const NOT_HELD: ReleaseAnswer = { kind: 'not-held' }
export const RELEASED: ReleaseAnswer = { kind: 'released' }
export const withoutNext = (released: ReleaseAnswer): ReleaseResult => ({ released })
