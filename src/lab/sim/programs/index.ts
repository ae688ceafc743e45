/** Small random programs against the whole public API, on the real runtime over simulated stores. */

export { programFrom } from './generate.ts'
export { play } from './play.ts'
export type { Played } from './play.ts'
export { print } from './program.ts'
export type { LockRef, Program, Section, Step } from './program.ts'
export { explain, shrinkProgram } from './shrink.ts'
export type { Finding, ProgramCheck } from './trace.ts'
