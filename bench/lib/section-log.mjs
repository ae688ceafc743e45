// When each section was asked for, entered and left, and by which task: typed arrays that double when full, because
// objects for a million sections would measure the garbage collector.
const FIRST_ROOM = 1 << 16

export class SectionLog {
  length = 0
  #asked = new Float64Array(FIRST_ROOM)
  #entered = new Float64Array(FIRST_ROOM)
  #left = new Float64Array(FIRST_ROOM)
  #task = new Uint32Array(FIRST_ROOM)

  add(task, asked, entered, left) {
    if (this.length === this.#task.length) this.#grow()
    const at = this.length++
    this.#task[at] = task
    this.#asked[at] = asked
    this.#entered[at] = entered
    this.#left[at] = left
  }

  #grow() {
    const bigger = (old) => {
      const fresh = new old.constructor(old.length * 2)
      fresh.set(old)
      return fresh
    }
    this.#asked = bigger(this.#asked)
    this.#entered = bigger(this.#entered)
    this.#left = bigger(this.#left)
    this.#task = bigger(this.#task)
  }

  /** What is sent to the process that counts: times on the common clock. */
  toCommonClock(offset) {
    const shifted = (times) => times.slice(0, this.length).map((time) => time + offset)
    return {
      asked: shifted(this.#asked),
      entered: shifted(this.#entered),
      left: shifted(this.#left),
      task: this.#task.slice(0, this.length),
    }
  }
}
