import { readFileSync, readdirSync } from 'node:fs'

import { Redis } from 'ioredis'

const field = (info, name) => Number(new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1] ?? NaN)

/** Reads what the Redis server has done so far, and takes its own readings off. */
export class RedisMeter {
  #client
  #own = 0

  constructor(url) {
    this.#client = new Redis(url)
    this.#client.on('error', () => {})
  }

  /** @returns {Promise<{ ops: number, cpu: number }>} commands including those inside scripts; cpu in µs */
  async read() {
    const info = await this.#client.info()
    this.#own++
    return {
      ops: field(info, 'total_commands_processed') - this.#own,
      cpu: (field(info, 'used_cpu_sys') + field(info, 'used_cpu_user')) * 1e6,
    }
  }

  async version() {
    const info = await this.#client.info()
    this.#own++
    return /^redis_version:(.*)$/m.exec(info)?.[1]?.trim() ?? 'unknown'
  }

  /** Forgets all keys, so that no round works in the litter of another. */
  async flush() {
    await this.#client.flushall()
    this.#own++
  }

  close() {
    this.#client.disconnect()
  }
}

/** For stores inside the process: there is no server to ask. */
export const NO_METER = {
  read: async () => ({ ops: NaN, cpu: NaN }),
  flush: async () => {},
  close: () => {},
}

/** The processor time of a server that does not tell its own, with its threads and children; NaN off Linux. */
export class ProcessMeter {
  #pid

  constructor(pid) {
    this.#pid = pid
  }

  async read() {
    const pid = this.#pid()
    try {
      const all = [
        pid,
        ...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean),
      ]
      return { ops: NaN, cpu: all.reduce((sum, one) => sum + threadsOf(one), 0) / 1000 }
    } catch {
      return { ops: NaN, cpu: NaN }
    }
  }

  async flush() {}
  close() {}
}

/** Nanoseconds on a processor: `stat` counts in hundredths of a second, which is longer than many a round. */
function threadsOf(pid) {
  const folder = `/proc/${pid}/task`
  return readdirSync(folder)
    .map((task) => Number(readFileSync(`${folder}/${task}/schedstat`, 'utf8').split(' ')[0]))
    .reduce((sum, time) => sum + time, 0)
}
