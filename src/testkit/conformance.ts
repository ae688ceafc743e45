import type { Case } from './case.ts'
import { claiming } from './cases/claiming.ts'
import { events } from './cases/events.ts'
import { expiry } from './cases/expiry.ts'
import { inspecting } from './cases/inspecting.ts'
import { names } from './cases/names.ts'
import { queueing } from './cases/queueing.ts'
import { releasing } from './cases/releasing.ts'
import { renewing } from './cases/renewing.ts'
import { sharing } from './cases/sharing.ts'
import { tokens } from './cases/tokens.ts'
import { withdrawing } from './cases/withdrawing.ts'

/** What every store must do, asked of the store itself. */
export const storeCases: readonly Case[] = [
  ...claiming,
  ...queueing,
  ...sharing,
  ...renewing,
  ...releasing,
  ...withdrawing,
  ...tokens,
  ...expiry,
  ...events,
  ...inspecting,
  ...names,
]
