/** The lab: lock clients under faults, their histories checked, and what happened in a picture. */
export { judge } from './record.ts'
export type {
  At,
  Counts,
  FaultRecord,
  Outcome,
  RunRecord,
  Surprise,
  TimelineEvent,
  Verdict,
  ViolationRecord,
} from './record.ts'
export { runAll } from './run.ts'
export type { Progress, RunOptions, Task } from './run.ts'
export { report } from './report/html.ts'
export type { ReportOptions } from './report/html.ts'
export { COLOURS, runLine, summary } from './report/summary.ts'
export { judgeAgain, jsonPieces } from './live/index.ts'
export { exitCode, tally } from './report/tally.ts'
