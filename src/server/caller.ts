import type { Principal } from './rights.ts'

/** Who asks, from where, and under which number: one per request, or one per session. */
export interface Caller {
  readonly principal: Principal
  /** The address. A proxy's word for another one is not taken. */
  readonly remote: string
  /** The number of the request or of the session. */
  readonly request: string
}
