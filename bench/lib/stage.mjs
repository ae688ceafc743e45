import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { redis } from '../../scripts/services.mjs'
import { startBroker } from './broker.mjs'
import { Subject } from './crew.mjs'
import { NO_METER, RedisMeter } from './meter.mjs'

/** Where a run happens: the servers, the measured processes, a folder. All of it is gone after `close`. */
export class Stage {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  #server
  #broker
  #meters = { redis: NO_METER, memory: NO_METER, broker: NO_METER }
  #standing = new Map()
  #names = 0
  #wish = {}

  /** Starts only what the contestants need. */
  static async set(contestants) {
    const stage = new Stage()
    if (contestants.some(({ store, ownStore }) => store === 'redis' && !ownStore)) {
      stage.#server = await redis()
      stage.#meters.redis = new RedisMeter(stage.#server.url)
    }
    if (contestants.some(({ needsBroker }) => needsBroker)) {
      stage.#broker = await startBroker()
      stage.#meters.broker = stage.#broker.meter
    }
    return stage
  }

  /** From now on every measured process records a CPU profile and hands it over when it ends. */
  profileWith(keepProfile) {
    this.#wish = { keepProfile }
  }

  get endpoint() {
    return {
      url: this.#server?.url,
      broker: this.#broker === undefined ? undefined : { port: this.#broker.port },
      folder: join(this.folder, 'locks'),
    }
  }

  /** The servers in use, for the record. */
  async servers() {
    return this.#server === undefined ? {} : { redis: await this.#meters.redis.version() }
  }

  meter(contestant) {
    if (contestant.needsBroker) return this.#meters.broker
    return contestant.ownStore ? NO_METER : this.#meters[contestant.store]
  }

  /** A name nobody used before. */
  name() {
    return `bench:${process.pid}:${this.#names++}`
  }

  /** A process that stays for the workload; `warmUp` is run when it is new. */
  async subject(contestant, warmUp) {
    const known = this.#standing.get(contestant.id)
    if (known !== undefined) return known
    const subject = await Subject.open(contestant, this.endpoint, this.#wish)
    this.#standing.set(contestant.id, subject)
    await warmUp?.(subject)
    return subject
  }

  /** Processes for one round only. */
  crew(contestant, count, flags) {
    const wish = { ...this.#wish, flags }
    return Promise.all(Array.from({ length: count }, () => Subject.open(contestant, this.endpoint, wish)))
  }

  async dismiss(contestant) {
    const subject = this.#standing.get(contestant.id)
    this.#standing.delete(contestant.id)
    await subject?.close()
  }

  /** Between workloads: no process and no key stays. */
  async clear() {
    const subjects = [...this.#standing.values()]
    this.#standing.clear()
    await Promise.all(subjects.map((subject) => subject.close()))
    await this.#meters.redis.flush()
  }

  async close() {
    await Promise.all([...this.#standing.values()].map((subject) => subject.close()))
    for (const meter of Object.values(this.#meters)) meter.close()
    this.#broker?.stop()
    await this.#server?.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
