import type { Env, Timer } from './env.ts'

/** A clock that jumped is noticed when somebody reads it. This often somebody does. */
export const LOOK_EVERY_MS = 500

/** Something that has to look at its clock while it is in use. */
export interface Watched {
  /** Something is held, waited for or asked. */
  readonly inUse: boolean
  /** Whether it is watched: asked at every acquire. */
  watched: boolean
  look(): void
}

const watches = new WeakMap<Env, JumpWatch>()

/**
 * A machine that slept finds its timers where it left them: a lease that ended meanwhile would be found out when its next renewal is due,
 * seconds after another process got the lock. So clocks are looked at twice a second, by one timer for the whole process, which keeps
 * nothing alive and stops when nothing is in use.
 */
export class JumpWatch {
  private readonly env: Env
  private readonly all = new Set<Watched>()
  private timer: Timer | null = null

  constructor(env: Env) {
    this.env = env
  }

  static of(env: Env): JumpWatch {
    let watch = watches.get(env)
    if (watch === undefined) {
      watch = new JumpWatch(env)
      watches.set(env, watch)
    }
    return watch
  }

  add(one: Watched): void {
    one.watched = true
    this.all.add(one)
    if (this.timer === null) this.arm()
  }

  private arm(): void {
    this.timer = this.env.setTimer(() => this.look(), LOOK_EVERY_MS, true)
  }

  private look(): void {
    this.timer = null
    for (const one of this.all) {
      if (one.inUse) {
        one.look()
        continue
      }
      one.watched = false
      this.all.delete(one)
    }
    // Whoever was told of a jump may have come in anew, and set the timer.
    if (this.all.size > 0 && this.timer === null) this.arm()
  }
}
