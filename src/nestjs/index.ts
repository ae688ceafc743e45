/** Locks in an application of Nest. */

export { HoldfastModule } from './module.ts'
export type { HoldfastModuleAsyncOptions, HoldfastModuleOptions } from './module.ts'
export { holdfastToken, InjectHoldfast } from './tokens.ts'
export { currentLease, Locked } from './locked.ts'
export type { Fits, LockedMethod, LockedOptions } from './locked.ts'
export { OnceInFleet } from './once-in-fleet.ts'
export type { FleetJob, OnceInFleetOptions } from './once-in-fleet.ts'
export { HoldfastHealth } from './health.ts'
export type { HoldfastHealthResult } from './health.ts'
export type { JobContext } from '../recipes/once.ts'
export type { HoldfastSource } from '../source.ts'
