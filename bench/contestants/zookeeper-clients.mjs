// What a client of ZooKeeper can do without any lock: create and delete of an ephemeral sequential node. For one task
// it is the raw limit; with many in flight it compares the clients themselves.
import { load } from './dist.mjs'

const FOLDER = '/bench'
const NODE = `${FOLDER}/n-`

async function openOurs({ urls }) {
  await import('./sockets.mjs')
  const { ZooKeeper } = await load('stores/zookeeper/client/index.js')
  const client = new ZooKeeper(new URL(urls.zookeeper).host, { sessionTimeout: 20_000 })
  await client.connected()
  await client.createPath(FOLDER, { mode: 'persistent' })
  return {
    lock: () => ({
      acquire: async () => (await client.create(NODE, { mode: 'ephemeral-sequential' })).path,
      release: (path) => client.delete(path),
    }),
    close: () => client.close(),
  }
}

async function openOther({ urls }) {
  await import('./sockets.mjs')
  const { default: zookeeper } = await import('node-zookeeper-client')
  const client = zookeeper.createClient(new URL(urls.zookeeper).host, { sessionTimeout: 20_000 })
  const connected = new Promise((resolve) => client.once('connected', resolve))
  client.connect()
  await connected
  const promised = (call) =>
    new Promise((resolve, reject) =>
      call((error, value) => {
        if (error) reject(new Error(error.message))
        else resolve(value)
      }),
    )
  await promised((done) => client.mkdirp(FOLDER, done))
  const { EPHEMERAL_SEQUENTIAL } = zookeeper.CreateMode
  return {
    lock: () => ({
      acquire: () => promised((done) => client.create(NODE, EPHEMERAL_SEQUENTIAL, done)),
      release: (path) => promised((done) => client.remove(path, done)),
    }),
    close: () => client.close(),
  }
}

const CONFIG = 'create and delete of an ephemeral sequential node'

/** @type {import('./index.mjs').Contestant[]} */
export const zookeeperClients = [
  {
    id: 'raw-zookeeper',
    family: 'raw',
    label: 'raw limit (our client)',
    store: 'zookeeper',
    role: 'limit',
    config: CONFIG,
    only: ['w1', 'w2'],
    open: openOurs,
  },
  {
    id: 'zookeeper-client',
    family: 'holdfast',
    label: 'holdfast/zookeeper-client',
    store: 'zookeeper',
    role: 'ours',
    config: CONFIG,
    only: ['w16'],
    open: openOurs,
  },
  {
    id: 'node-zookeeper-client',
    family: 'node-zookeeper-client',
    package: 'node-zookeeper-client',
    label: 'node-zookeeper-client',
    store: 'zookeeper',
    role: 'peer',
    config: CONFIG,
    only: ['w16'],
    open: openOther,
  },
  {
    id: 'npm-zookeeper',
    family: 'zookeeper',
    package: 'zookeeper',
    label: 'zookeeper',
    store: 'zookeeper',
    role: 'peer',
    config: CONFIG,
    only: ['w16'],
    missing: 'it compiles a C library when it is installed',
    open: () => Promise.reject(new Error('not installed')),
  },
]
