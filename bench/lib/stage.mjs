import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { startBroker } from './broker.mjs'
import { Subject } from './crew.mjs'
import { NO_METER } from './meter.mjs'
import { SERVERS } from './servers.mjs'

/** Where a run happens: the servers, the measured processes, a folder. All of it is gone after `close`. */
export class Stage {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  #servers = new Map()
  #broker
  #standing = new Map()
  #names = 0
  #wish = {}

  /** Starts only what the contestants need. */
  static async set(contestants) {
    const stage = new Stage()
    const wanted = new Set(
      contestants.flatMap(({ store, ownStore, needs = [] }) => [ownStore ? '' : store, ...needs]),
    )
    const names = Object.keys(SERVERS).filter((name) => wanted.has(name))
    try {
      await Promise.all(names.map((name) => stage.#start(name)))
      if (contestants.some(({ needsBroker }) => needsBroker)) stage.#broker = await startBroker()
    } catch (error) {
      await stage.close()
      throw error
    }
    return stage
  }

  async #start(name) {
    this.#servers.set(name, await SERVERS[name]())
  }

  /** From now on every measured process records a CPU profile and hands it over when it ends. */
  profileWith(keepProfile) {
    this.#wish = { keepProfile }
  }

  get endpoint() {
    const urls = Object.fromEntries([...this.#servers].map(([name, { url }]) => [name, url]))
    return {
      url: urls.redis,
      urls: { ...urls, sqlite: `sqlite:${join(this.folder, 'locks.db')}` },
      broker: this.#broker === undefined ? undefined : { port: this.#broker.port },
      folder: join(this.folder, 'locks'),
    }
  }

  /** For what a workload does to the servers themselves. */
  server(name) {
    return this.#servers.get(name)
  }

  /** The servers in use, for the record. */
  async servers() {
    const told = [...this.#servers].map(async ([name, { version }]) => [name, await version()])
    return Object.fromEntries(await Promise.all(told))
  }

  meter({ needsBroker, ownStore, store, meteredBy = store }) {
    if (needsBroker) return this.#broker.meter
    return (ownStore ? undefined : this.#servers.get(meteredBy)?.meter) ?? NO_METER
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
    await this.#servers.get('redis')?.meter.flush()
  }

  async close() {
    await Promise.all([...this.#standing.values()].map((subject) => subject.close()))
    this.#broker?.meter.close()
    this.#broker?.stop()
    for (const { meter } of this.#servers.values()) meter.close()
    await Promise.all([...this.#servers.values()].map(({ stop }) => stop()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}
