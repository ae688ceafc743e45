// Who takes part. Every library sits behind the same few functions, so that a workload cannot favour one.
import { asyncMutex } from './async-mutex.mjs'
import { curator } from './curator.mjs'
import { holdfast } from './holdfast.mjs'
import { liveMutex } from './live-mutex.mjs'
import { properLockfile } from './proper-lockfile.mjs'
import { quorum } from './quorum.mjs'
import { rawDatabases } from './raw-databases.mjs'
import { rawMemcached } from './raw-memcached.mjs'
import { rawMemory } from './raw-memory.mjs'
import { rawRedis } from './raw-redis.mjs'
import { redisSemaphore } from './redis-semaphore.mjs'
import { redlockUniversal } from './redlock-universal.mjs'
import { redlock } from './redlock.mjs'
import { sesamecare } from './sesamecare.mjs'
import { simpleRedisMutex } from './simple-redis-mutex.mjs'
import { verrou } from './verrou.mjs'
import { zookeeperClients } from './zookeeper-clients.mjs'

/**
 * What one task holds on to while it works with one name. Made before the clock starts.
 * @typedef {object} LockHandle
 * @property {() => Promise<unknown>} acquire waits; rejects when the library gives up
 * @property {(held: any) => Promise<unknown> | void} release
 *
 * @typedef {{ held: () => boolean, drop: () => unknown }} Held
 *
 * An open library in one process.
 * @typedef {object} Session
 * @property {(name: string, ttl?: number) => LockHandle} lock
 * @property {(name: string, ttl: number) => Promise<Held>} [hold] acquires and keeps renewing until it is dropped;
 *   missing where a library does not renew
 * @property {(name: string) => { read: LockHandle, write: LockHandle }} [shared] read-write lock
 * @property {(name: string) => LockHandle} [strangersLock] a lock through another session on the same connection,
 *   for libraries that queue locally first
 * @property {(wish: { mode: string, size: number, ms: number, name: string }) => Promise<any>} [loops] for what is not
 *   Node: it runs the loops itself and says what came of them
 * @property {(count: number) => Promise<any>} [clients] more of the same, each with a connection of its own
 * @property {{ listen: Function, send: Function, ask: Function }} [signals] bare messages between processes, and a bare question
 * @property {readonly any[]} [connections] of the driver, one for each server, where several vote
 * @property {(held: any) => number} [attemptsOf] how often the library asked until it held this
 * @property {() => unknown} close
 *
 * Where a session finds its store.
 * @typedef {{ url?: string, urls: Record<string, string>, folder: string, broker?: { port: number } }} Endpoint
 *
 * @typedef {object} Contestant
 * @property {string} id unique
 * @property {string} family the library; what `--only` names
 * @property {string} label
 * @property {string} store the comparison it belongs to
 * @property {'ours' | 'peer' | 'limit'} role
 * @property {string} config in words: what was set
 * @property {boolean} [waitingOnly] differs from the library's default only in how it waits, so that workloads
 *   without waiting leave it out
 * @property {boolean} [tuned] differs from the library's default in more than that
 * @property {boolean} [ownStore] does not use the store of its comparison but something of its own; shown, never
 *   counted as the best peer
 * @property {boolean} [secondary] the same library on another driver: shown where drivers matter, never compared with
 * @property {boolean} [renews] keeps a lease alive by itself (see `hold`)
 * @property {boolean} [growth] one of the few whose growth is measured
 * @property {'counted'} [attempts] its sessions can say how often they asked (see `attemptsOf`)
 * @property {string} [driver] ioredis unless told
 * @property {boolean} [needsBroker]
 * @property {readonly string[]} [only] the workloads that it is for; all that take it, when not told
 * @property {readonly string[]} [needs] servers besides that of its store
 * @property {string} [meteredBy] the store whose server works for it, when not its own
 * @property {string} [execPath] the Node that runs it, when not the benchmark's
 * @property {string} [node] the major version of Node that it needs, when the benchmark's is too old: see lib/newer-node.mjs
 * @property {string} [package] on npm; its version is recorded
 * @property {string} [missing] why it cannot take part here
 * @property {string} [file] set by the list below
 * @property {(endpoint: Endpoint) => Promise<Session>} open
 */

/** Each file's entries, with the file's name: a process loads only the one it is to be. */
const from = (file, entries) => entries.map((entry) => ({ ...entry, file }))

/** @type {readonly Contestant[]} */
export const CONTESTANTS = [
  ...from('raw-memory.mjs', rawMemory),
  ...from('raw-redis.mjs', rawRedis),
  ...from('raw-databases.mjs', rawDatabases),
  ...from('raw-memcached.mjs', rawMemcached),
  ...from('zookeeper-clients.mjs', zookeeperClients),
  ...from('holdfast.mjs', holdfast),
  ...from('quorum.mjs', quorum),
  ...from('curator.mjs', curator),
  ...from('async-mutex.mjs', asyncMutex),
  ...from('redlock.mjs', redlock),
  ...from('sesamecare.mjs', sesamecare),
  ...from('redis-semaphore.mjs', redisSemaphore),
  ...from('redlock-universal.mjs', redlockUniversal),
  ...from('verrou.mjs', verrou),
  ...from('simple-redis-mutex.mjs', simpleRedisMutex),
  ...from('live-mutex.mjs', liveMutex),
  ...from('proper-lockfile.mjs', properLockfile),
]
