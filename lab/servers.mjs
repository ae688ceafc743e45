// The servers of the lab, started when a part first asks for them, and stopped together.
import { available, mariadb, redis, zookeeper } from '../scripts/services.mjs'

const STARTS = { redis, zookeeper, mysql: mariadb }
const PROGRAMS = { redis: 'redis', zookeeper: 'zookeeper', mysql: 'mariadb' }

export class LabServers {
  #started = new Map()

  has(name) {
    return available(PROGRAMS[name])
  }

  /** The one server of that name. */
  async get(name) {
    if (!this.#started.has(name)) this.#started.set(name, STARTS[name]())
    return this.#started.get(name)
  }

  async stop() {
    const servers = await Promise.allSettled(this.#started.values())
    await Promise.all(servers.map(({ value }) => value?.stop()))
  }
}
