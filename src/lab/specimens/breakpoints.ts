interface Stop {
  readonly reached: () => void
  readonly gate: Promise<void>
}

/** Where a client can be made to stand still, by the name of the place: what luck would do once a year. */
export class Breakpoints {
  private readonly stops = new Map<string, Stop>()

  /** The next one to come to this place stops there until `go`. */
  stopAt(place: string): { readonly reached: Promise<void>; readonly go: () => void } {
    let arrive = (): void => {}
    let go = (): void => {}
    const reached = new Promise<void>((resolve) => void (arrive = resolve))
    const gate = new Promise<void>((resolve) => void (go = resolve))
    this.stops.set(place, { reached: arrive, gate })
    return { reached, go }
  }

  /** Called by the client at the place. */
  async pass(place: string): Promise<void> {
    const stop = this.stops.get(place)
    if (stop === undefined) return
    this.stops.delete(place)
    stop.reached()
    await stop.gate
  }
}
