// What a client of ZooKeeper can do without any lock: create and delete of an ephemeral sequential node. For one task
// it is the raw limit; with many in flight it compares the clients themselves.
import { load } from './dist.mjs'

const FOLDER = '/bench'
const NODE = `${FOLDER}/n-`

async function connectOurs({ zookeeper }) {
  await import('./sockets.mjs')
  const { ZooKeeper } = await load('stores/zookeeper/client/index.js')
  const client = new ZooKeeper(new URL(zookeeper).host, { sessionTimeout: 20_000 })
  await client.connected()
  await client.createPath(FOLDER, { mode: 'persistent' })
  return client
}

/** What is asked for in one turn shares a transaction, as in our store; one task alone sends each by itself. */
async function openOurs({ urls }) {
  const client = await connectOurs(urls)
  return {
    lock: () => ({
      acquire: async () =>
        (await client.write({ kind: 'create', path: NODE, mode: 'ephemeral-sequential' })).path,
      release: (path) => client.write({ kind: 'delete', path }),
    }),
    close: () => client.close(),
  }
}

/** Every write a request of its own, as the other clients do it. */
async function openOursOneByOne({ urls }) {
  const client = await connectOurs(urls)
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
const SHARED = `${CONFIG}; those of one turn in one transaction`

/** @type {import('./index.mjs').Contestant[]} */
export const zookeeperClients = [
  {
    id: 'raw-zookeeper',
    family: 'raw',
    label: 'raw limit (our client)',
    store: 'zookeeper',
    role: 'limit',
    config: SHARED,
    only: ['w1', 'w2'],
    open: openOurs,
  },
  {
    id: 'zookeeper-client',
    family: 'holdfast',
    label: 'holdfast/zookeeper-client, write()',
    store: 'zookeeper',
    role: 'ours',
    config: SHARED,
    only: ['w16'],
    open: openOurs,
  },
  {
    id: 'zookeeper-client-one-by-one',
    family: 'holdfast',
    label: 'holdfast/zookeeper-client, create() and delete()',
    store: 'zookeeper',
    role: 'ours',
    config: CONFIG,
    secondary: true,
    only: ['w16'],
    open: openOursOneByOne,
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
