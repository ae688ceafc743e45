import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, zookeeper } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { Clocks } from '../../../src/lab/sim/clocks.ts'
import { SessionServer } from '../../../src/lab/sim/stores/session-server.ts'
import { ZooKeeper } from '../../../src/stores/zookeeper/client/index.ts'
import { Random } from '../../../src/testkit/random.ts'

const SEQUENCES = 8
const LENGTH = 30
const TIMEOUT_MS = 1000

/** The simulated server, with a clock in the test's hands and sessions that live until they are told to end. */
class Simulated {
  private time = 0
  private readonly alarms: { at: number; call: () => void }[] = []
  private readonly sessions = new Map<number, number>()
  readonly server = new SessionServer({ clocks: new Clocks(() => this.time), up: true }, (ms, call) => {
    this.alarms.push({ at: this.time + ms, call })
  })

  open(): number {
    const id = this.server.connect(TIMEOUT_MS)
    this.sessions.set(id, 0)
    return id
  }

  /** Nothing is heard of it any more, and of the others enough. */
  end(session: number): void {
    this.sessions.delete(session)
    for (const part of [0.6, 0.6]) {
      this.pass(TIMEOUT_MS * part)
      for (const [id, requests] of this.sessions) {
        this.sessions.set(id, requests + 1)
        this.server.hears(id, requests + 1)
      }
    }
  }

  private pass(ms: number): void {
    this.time += ms
    const due = this.alarms.filter(({ at }) => at <= this.time)
    for (const alarm of due) {
      this.alarms.splice(this.alarms.indexOf(alarm), 1)
      alarm.call()
    }
  }
}

describe.skipIf(!available('zookeeper'))('the simulated session server does what ZooKeeper does', () => {
  let server: Server

  beforeAll(async () => void (server = await zookeeper()))
  afterAll(() => server.stop())

  const connect = async (): Promise<ZooKeeper> => {
    const zk = new ZooKeeper(`127.0.0.1:${server.port}`, { sessionTimeout: 10_000 })
    await zk.connected()
    return zk
  }

  it.each(Array.from({ length: SEQUENCES }, (_, index) => index + 1))('sequence %i', async (seed) => {
    const random = new Random(seed)
    const simulated = new Simulated()
    const dir = `/differential-${process.pid}-${seed}`
    await using observer = await connect()
    await observer.create(dir)
    const sessions = await Promise.all(
      [1, 2, 3].map(async () => ({ real: await connect(), simulated: simulated.open(), open: true })),
    )
    /** In the order of their making: transaction numbers, which only have to grow alike. */
    const made: { name: string; real: bigint; simulated: number; owner: ZooKeeper }[] = []
    const fired = { real: [] as string[], simulated: [] as string[] }
    const children = async (): Promise<readonly string[]> => {
      await observer.sync(dir)
      return [...(await observer.getChildren(dir)).children].sort()
    }
    for (let step = 0; step < LENGTH; step++) {
      const session = sessions[random.below(sessions.length)] as (typeof sessions)[0]
      const choice = random.next()
      let said: { real: unknown; simulated: unknown } = { real: undefined, simulated: undefined }
      const { name: some = 'nobody-0000000000', owner } = made[random.below(made.length)] ?? {}
      if (choice < 0.1 && owner !== undefined) {
        const reader = some.replace('__WRIT__', '__READ__')
        const real = await owner
          .transaction([
            { kind: 'create', path: `${dir}/${reader}`, mode: 'ephemeral' },
            { kind: 'delete', path: `${dir}/${some}` },
          ])
          .then(
            () => true,
            () => false,
          )
        said = { real, simulated: simulated.server.downgrade(dir, some) }
      } else if (choice < 0.5 && session.open) {
        const prefix = `p${random.below(3)}-__WRIT__`
        const { path, stat } = await session.real.create(`${dir}/${prefix}`, { mode: 'ephemeral-sequential' })
        const node = simulated.server.create(session.simulated, dir, prefix)
        said = { real: path.slice(dir.length + 1), simulated: node.name }
        made.push({ name: node.name, real: stat.czxid, simulated: node.czxid, owner: session.real })
      } else if (choice < 0.7) {
        const real = await observer.delete(`${dir}/${some}`).then(
          () => true,
          () => false,
        )
        said = { real, simulated: simulated.server.remove(dir, some) }
      } else if (choice < 0.9) {
        // A watch belongs to whoever asks for it, once per path.
        if (simulated.server.find(dir, some) !== undefined) {
          await observer.exists(`${dir}/${some}`, {
            watch: ({ type }) => void (type === 'deleted' && fired.real.push(some)),
          })
          simulated.server.watchNode(dir, some, 'observer', () => fired.simulated.push(some))
        }
      } else if (sessions.filter(({ open }) => open).length > 1 && session.open) {
        session.open = false
        await session.real.close()
        simulated.end(session.simulated)
      }
      expect({ step, said: said.simulated }).toEqual({ step, said: said.real })
      expect({ step, children: [...simulated.server.children(dir)].sort() }).toEqual({
        step,
        children: await children(),
      })
    }
    const grows = (numbers: readonly (number | bigint)[]): boolean =>
      numbers.every((number, index) => index === 0 || number > (numbers[index - 1] as number | bigint))
    expect(grows(made.map(({ real }) => real))).toBe(true)
    expect(grows(made.map(({ simulated: czxid }) => czxid))).toBe(true)
    await observer.sync(dir)
    const unique = (names: readonly string[]): string[] => [...new Set(names)].sort()
    expect(unique(fired.simulated)).toEqual(unique(fired.real))
    for (const session of sessions) if (session.open) await session.real.close()
  })
})
