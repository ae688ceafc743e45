/** A server that the lab may hurt. Whoever starts servers hands these in; the lab itself starts none. */
export interface ServerHandle {
  readonly host: string
  readonly port: number
  readonly url: string
  /** What is done to it is done to a part of several servers that the others can do without. */
  readonly minority?: true
  kill(signal?: NodeJS.Signals): Promise<void>
  restart(options?: { keepData?: boolean }): Promise<void>
  pause(): Promise<void>
  resume(): Promise<void>
}

/** A wall clock that can be moved for one server. */
export interface ClockHandle {
  jump(ms: number): void
}
