import { requestsSent } from '../contestants/requests.mjs'

/**
 * Runs something inside a measured process and says what it cost this process.
 * @template T
 * @param {() => Promise<T>} body
 * @returns {Promise<T & { ms: number, cpu: number, requests: number }>} cpu in µs
 */
export async function measured(body) {
  const requests = requestsSent()
  const cpu = process.cpuUsage()
  const began = performance.now()
  const result = await body()
  const ms = performance.now() - began
  const { user, system } = process.cpuUsage(cpu)
  return { ...result, ms, cpu: user + system, requests: requestsSent() - requests }
}

/** Counts failures by their message, for a library may fail ten thousand times in one round. */
export class Failures {
  #counts = new Map()

  add(error) {
    const message = String(error?.message ?? error)
      .split('\n')[0]
      .slice(0, 120)
    this.#counts.set(message, (this.#counts.get(message) ?? 0) + 1)
  }

  get total() {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  toJSON() {
    return Object.fromEntries(this.#counts)
  }
}
