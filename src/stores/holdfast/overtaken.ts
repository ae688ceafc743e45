/**
 * Answers that come later than one to a later question. Each request may have a connection of its own, at the server or behind
 * it: a renewal that was under way when its claim was given back is answered by what was before, and nothing would ever
 * take that back.
 */
export class Overtaken {
  private moment = 0
  /** How many answers about each claim are under way. */
  private readonly asked = new Map<string, number>()
  /** When those were given back about which some are. */
  private readonly gone = new Map<string, number>()

  /** Returns what `end` has to know. */
  begin(id: string): number {
    this.asked.set(id, (this.asked.get(id) ?? 0) + 1)
    return this.moment
  }

  /** An answer is there. Whether it still holds. */
  end(id: string, since: number): boolean {
    const holds = (this.gone.get(id) ?? 0) <= since
    const left = (this.asked.get(id) ?? 1) - 1
    if (left > 0) this.asked.set(id, left)
    else {
      this.asked.delete(id)
      this.gone.delete(id)
    }
    return holds
  }

  givenBack(id: string): void {
    if (this.asked.has(id)) this.gone.set(id, ++this.moment)
  }
}
