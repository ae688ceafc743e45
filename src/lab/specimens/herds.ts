import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { ALL } from '../../core/contract.ts'
import type { Lock } from '../../locks/lock.ts'
import { ZooKeeper } from '../../stores/zookeeper/client/index.ts'
import type { ClaimShape } from '../../testkit/history.ts'
import type { ServerHandle } from '../live/servers.ts'
import type { Actor, Play } from './play.ts'
import { belief } from './play.ts'
import type { Specimen } from './specimen.ts'
import type { CountedLock } from './zookeeper-locks.ts'
import { ParentWatchLock, UniqueNodeLock } from './zookeeper-locks.ts'

const CLIENTS = 12
/** One who is next, and one for whoever looks after the queue. */
const ENOUGH_PER_RELEASE = 2

interface Taker {
  readonly actor: Actor
  take(): Promise<() => Promise<unknown>>
}

/** All ask, one after the other has it, and the server says how many watches went off meanwhile. */
async function inTurn(play: Play, takers: readonly Taker[]): Promise<void> {
  const server = serverOf(play)
  const [first, ...others] = takers
  if (first === undefined) return
  const release = await first.take()
  const all = others.map(async (taker) => (await taker.take())())
  // Everybody stands in line.
  await sleep(400)
  const before = await watchesFired(server)
  await release()
  await Promise.all(all)
  const fired = (await watchesFired(server)) - before
  play.measured('herd', fired, takers.length * ENOUGH_PER_RELEASE, `wake-ups for ${takers.length} releases`)
}

type ShapeOf = (index: number) => ClaimShape

const alone: ShapeOf = () => ({})

function flawedTakers(
  play: Play,
  make: (zookeeper: ZooKeeper, index: number) => CountedLock,
  shape: ShapeOf = alone,
): Taker[] {
  const { host, port } = serverOf(play)
  return Array.from({ length: CLIENTS }, (_, index) => {
    const actor = play.actor(`client ${index + 1}`, shape(index))
    const zookeeper = new ZooKeeper([{ host, port }], { sessionTimeout: 10_000 })
    play.finally(() => zookeeper[Symbol.asyncDispose]())
    const lock = make(zookeeper, index)
    return {
      actor,
      async take() {
        await zookeeper.connected()
        await actor.takes(async () => {
          await lock.acquire()
          return belief(play.serial())
        })
        return () => actor.releases(() => lock.release())
      },
    }
  })
}

async function ourTakers(
  play: Play,
  lockOf: (play: Play, index: number) => Promise<Lock>,
  shape: ShapeOf = alone,
): Promise<Taker[]> {
  return Promise.all(
    Array.from({ length: CLIENTS }, async (_, index) => {
      const actor = play.actor(`client ${index + 1}`, shape(index))
      const lock = await lockOf(play, index)
      return {
        actor,
        async take() {
          const lease = await actor.takes(() => lock.acquire())
          return () => actor.releases(() => lease.release())
        },
      }
    }),
  )
}

const onHoldfast = async (play: Play): Promise<Lock> =>
  (await play.holdfast(serverOf(play).url, { ttl: 10_000 })).mutex(play.name)

const inTurnOnHoldfast = {
  run: async (play: Play): Promise<void> => inTurn(play, await ourTakers(play, onHoldfast)),
}

/** Every third one writes. */
const isWriter = (index: number): boolean => index % 3 === 0
const readWrite: ShapeOf = (index) => ({ weight: isWriter(index) ? ALL : 1, capacity: ALL })

export const uniqueNode: Specimen = {
  id: 'zookeeper-unique-node',
  title: 'One ZooKeeper node that all want to create',
  flaw: 'works, and every release wakes everybody',
  needs: 'zookeeper',
  fault: `${CLIENTS} clients take turns`,
  caughtBy: 'herd',
  async flawed(play) {
    await parentOf(play)
    await inTurn(
      play,
      flawedTakers(play, (zookeeper) => new UniqueNodeLock(zookeeper, `${pathOf(play)}/lock`)),
    )
  },
  ours: inTurnOnHoldfast,
}

export const parentWatch: Specimen = {
  id: 'zookeeper-parent-watch',
  title: 'A queue of ZooKeeper nodes that everybody watches',
  flaw: 'every release wakes everybody, and each reads the whole queue',
  needs: 'zookeeper',
  fault: `${CLIENTS} clients take turns`,
  caughtBy: 'herd',
  async flawed(play) {
    await parentOf(play)
    await inTurn(
      play,
      flawedTakers(play, (zookeeper) => new ParentWatchLock(zookeeper, pathOf(play))),
    )
  },
  ours: inTurnOnHoldfast,
}

export const readWriteParentWatch: Specimen = {
  id: 'zookeeper-read-write-parent-watch',
  title: 'A read-write lock in ZooKeeper whose queue everybody watches',
  flaw: 'every release wakes everybody, also those who wait for somebody else',
  needs: 'zookeeper',
  fault: `${CLIENTS} readers and writers take turns`,
  caughtBy: 'herd',
  async flawed(play) {
    await parentOf(play)
    const kind = (index: number): 'read' | 'write' => (isWriter(index) ? 'write' : 'read')
    await inTurn(
      play,
      flawedTakers(
        play,
        (zookeeper, index) => new ParentWatchLock(zookeeper, pathOf(play), kind(index)),
        readWrite,
      ),
    )
  },
  ours: {
    async run(play) {
      const lockOf = async (_: Play, index: number): Promise<Lock> => {
        const holdfast = await play.holdfast(serverOf(play).url, { ttl: 10_000 })
        const lock = holdfast.readWriteLock(play.name)
        return isWriter(index) ? lock.write : lock.read
      }
      await inTurn(play, await ourTakers(play, lockOf, readWrite))
    },
  },
}

function serverOf({ servers }: Play): ServerHandle {
  if (servers.zookeeper === undefined) throw new Error('there is no ZooKeeper')
  return servers.zookeeper
}

const pathOf = ({ name }: Play): string => `/${name.replace(':', '-')}`

/** The node below which a play happens; gone with it. */
async function parentOf(play: Play): Promise<void> {
  const { host, port } = serverOf(play)
  const zookeeper = new ZooKeeper([{ host, port }])
  await zookeeper.connected()
  play.finally(async () => {
    await zookeeper.delete(pathOf(play))
    await zookeeper[Symbol.asyncDispose]()
  })
  await zookeeper.createPath(pathOf(play))
}

/** How many watches have gone off since the server started, by its own count. */
async function watchesFired(server: ServerHandle): Promise<number> {
  const text = await new Promise<string>((resolve, reject) => {
    const socket = connect({ host: server.host, port: server.port }, () => socket.write('mntr'))
    let all = ''
    socket.setEncoding('utf8').on('data', (part) => (all += String(part)))
    socket.on('error', reject).on('close', () => resolve(all))
  })
  const counts = [...text.matchAll(/^zk_sum_node_\w+_watch_count\s+(\d+)/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}
