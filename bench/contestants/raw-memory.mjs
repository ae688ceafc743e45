// The limit in memory: a first-in-first-out list of waiters and one promise for each acquire. No lease, no token, no
// way to give up: it shows what promises alone cost.
const FREE = Promise.resolve()

class BareQueue {
  #held = false
  #waiting = []
  #next = 0

  acquire() {
    if (!this.#held) {
      this.#held = true
      return FREE
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  release() {
    const resolve = this.#waiting[this.#next]
    if (resolve === undefined) {
      this.#held = false
      return
    }
    this.#waiting[this.#next++] = undefined
    if (this.#next > 1024 && this.#next * 2 > this.#waiting.length) {
      this.#waiting.splice(0, this.#next)
      this.#next = 0
    }
    resolve()
  }
}

/** @type {import('./index.mjs').Contestant[]} */
export const rawMemory = [
  {
    id: 'raw-memory',
    family: 'raw',
    label: 'raw limit (bare queue)',
    store: 'memory',
    role: 'limit',
    config: 'one promise an acquire',
    open: async () => {
      const queues = new Map()
      return {
        lock(name) {
          let queue = queues.get(name)
          if (queue === undefined) queues.set(name, (queue = new BareQueue()))
          return { acquire: () => queue.acquire(), release: () => queue.release() }
        },
        close: () => queues.clear(),
      }
    },
  },
]
