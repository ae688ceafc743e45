/** The real runtime and locks on simulated stores: every run depends on nothing but its seed. */

export type { Fault, FaultKind } from './fault.ts'
export type {
  Check,
  Expected,
  Replay,
  Scenario,
  Shrunk,
  SimulateOptions,
  Simulated,
  StoreKind,
  SurveyOptions,
  SurveyProgress,
  SurveyRow,
} from './types.ts'

// In the making, with these signatures:
// export const scenarios: readonly Scenario[]
// export function simulate(options: SimulateOptions): Promise<Simulated>
// export function survey(options: SurveyOptions): Promise<readonly SurveyRow[]>
// export function shrink(run: Simulated, check: string): Promise<Shrunk>
// export function replay(run: Replay): Promise<Simulated>
