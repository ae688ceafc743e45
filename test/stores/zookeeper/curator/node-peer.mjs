// The Node side of the tests with Curator: the same sections as CuratorPeer.java, in a process of its own.
//   node node-peer.mjs <connect> <mutex|read-write|semaphore> <root> <name> <folder> <loops> <rounds> <fair>
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'

import { Holdfast } from '../../../../dist/index.js'
import { zookeeperStore } from '../../../../dist/stores/zookeeper/index.js'

const [connect, what, root, name, folder, loops, rounds, fair] = process.argv.slice(2)
const store = zookeeperStore(connect, { root })
const holdfast = new Holdfast(store, { ttl: 6_000, wait: 60_000, fair })

const marker = join(folder, 'marker')
const counter = join(folder, 'counter')
const present = (prefix) => readdirSync(folder).filter((file) => file.startsWith(prefix)).length
const INSIDE_MS = 15
let made = 0

/** With a marker that can exist once only, and with a turn of the event loop in the middle. */
async function alone(section) {
  writeFileSync(marker, '', { flag: 'wx' })
  await section()
  rmSync(marker)
}

async function beside(prefix, section) {
  const own = join(folder, `${prefix}node-${process.pid}-${made++}`)
  writeFileSync(own, '', { flag: 'wx' })
  await section()
  // Others must have the time to come in, or it proves nothing that they do not.
  await sleep(INSIDE_MS)
  await section()
  rmSync(own)
}

function refuse(met, problem) {
  if (met) throw new Error(problem)
}

async function count() {
  const value = Number(readFileSync(counter, 'utf8'))
  await turn()
  writeFileSync(counter, String(value + 1))
}

const lock = holdfast.readWriteLock(name)
const read = () => beside('reader-', () => refuse(existsSync(marker), 'a reader met a writer'))
const write = () => alone(() => refuse(present('reader-') > 0, 'a writer met a reader'))
/** Every writer leaves a value of its own. Every other one stays on to read, and must find what it left. */
async function writeAndRead(lease) {
  const value = `node ${process.pid} ${made++}`
  await write()
  writeFileSync(counter, value)
  if (Math.random() < 1 / 2) return
  await lock.downgrade(lease)
  await read()
  refuse(readFileSync(counter, 'utf8') !== value, 'somebody wrote in between')
}
const sections = {
  mutex: () => holdfast.mutex(name).run(() => alone(count)),
  'read-write': () => (Math.random() < 1 / 3 ? lock.write.run(writeAndRead) : lock.read.run(read)),
  semaphore: () =>
    holdfast
      .semaphore(name, 3)
      .run(() => beside('permit-', () => refuse(present('permit-') > 3, 'too many have a permit'))),
}

await Promise.all(
  Array.from({ length: Number(loops) }, async () => {
    for (let round = 0; round < Number(rounds); round++) await sections[what]()
  }),
)
await holdfast.close()
await store.close()
console.log('DONE')
