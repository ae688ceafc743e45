import type { Case, Target } from './case.ts'
import { beside } from './cases/beside.ts'
import { cancelling } from './cases/cancelling.ts'
import { claiming } from './cases/claiming.ts'
import { composing } from './cases/composing.ts'
import { connections } from './cases/connections.ts'
import { downgrading, downgradingFaults, downgradingLocks } from './cases/downgrading.ts'
import { events } from './cases/events.ts'
import { excluding } from './cases/excluding.ts'
import { expiry } from './cases/expiry.ts'
import { inspecting } from './cases/inspecting.ts'
import { leasing } from './cases/leasing.ts'
import { names } from './cases/names.ts'
import { processes } from './cases/processes.ts'
import { queueing } from './cases/queueing.ts'
import { releasing } from './cases/releasing.ts'
import { renewing } from './cases/renewing.ts'
import { sharing } from './cases/sharing.ts'
import { tokens } from './cases/tokens.ts'
import { withdrawing } from './cases/withdrawing.ts'
import { whyNot } from './needs.ts'

/** What every store must do, asked of the store itself. */
export const storeCases: readonly Case[] = [
  ...claiming,
  ...queueing,
  ...sharing,
  ...downgrading,
  ...renewing,
  ...releasing,
  ...withdrawing,
  ...beside,
  ...tokens,
  ...expiry,
  ...events,
  ...inspecting,
  ...names,
]

/** What every lock must do, whatever store is below it. */
export const lockCases: readonly Case[] = [
  ...excluding,
  ...cancelling,
  ...leasing,
  ...composing,
  ...downgradingLocks,
]

/** What must hold when processes die and connections break. Each needs something of its target besides a store. */
export const faultCases: readonly Case[] = [...processes, ...connections, ...downgradingFaults]

/** All cases. Those that a target lacks something for are reported as not applicable. */
export function conformance(): readonly Case[] {
  return [...storeCases, ...lockCases, ...faultCases]
}

/** The cases of a target: without those of which is known before a store is open that they do not apply. */
export function casesFor(target: Target): readonly Case[] {
  return conformance().filter((testCase) => whyNot(testCase, target, target.abilities) === null)
}
