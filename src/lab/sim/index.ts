/** The real runtime and locks on simulated stores: every run depends on nothing but its seed. */

export type { Fault, FaultKind } from './fault.ts'
export { describe } from './faults.ts'
export { simulate } from './run.ts'
export { scenarios } from './scenarios.ts'
export { explain, replay, shrink, stepped } from './shrink.ts'
export { survey } from './survey.ts'
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
