import type { Unknown } from '../../core/contract.ts'
import { UnsupportedError } from '../../core/errors.ts'
import { unknownForGood } from '../../core/unknown.ts'
import { failed } from './failure.ts'
import { markKey } from './keys.ts'
import type { Driver, Node } from './client/driver.ts'
import { doneOf } from './replies.ts'
import { unlessQueued } from './role.ts'

/**
 * Durable fencing: tokens count up and owe nothing to a clock, so the counter must never be lost. It lives on a server that
 * writes every change to disk before it answers and evicts nothing. It is one for all names, and has no end. It was put there
 * when the server was set up, which makes it the mark as well: a server that comes back empty has lost it, and is refused
 * instead of giving old tokens out again.
 */

/** What a server lacks for durable fencing; `undefined` if nothing. */
export async function durableProblem(node: Node): Promise<string | undefined> {
  const settings = await settingsOf(node, ['appendonly', 'appendfsync', 'maxmemory-policy', 'maxmemory'])
  if (settings.get('appendonly') !== 'yes' || settings.get('appendfsync') !== 'always') {
    return 'it does not write every change to disk before it answers: set appendonly to yes and appendfsync to always'
  }
  if (settings.get('maxmemory-policy') !== 'noeviction' && settings.get('maxmemory') !== '0') {
    return 'it evicts keys when its memory is full: set maxmemory-policy to noeviction'
  }
  return undefined
}

/** A server may be one for a Cluster, whatever the client is for: then a script takes the keys of one slot only. */
async function isForCluster(node: Node): Promise<boolean> {
  const info = await node.send(['info', 'cluster']).catch(() => '')
  return /^cluster_enabled:1/m.test(String(info))
}

export async function settingsOf(node: Node, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const settings = new Map<string, string>()
  for (const name of names) {
    const reply = unlessQueued(await node.send(['config', 'get', name]))
    // A list of name and value; a client that speaks RESP3 may make an object or a map of it.
    const value: unknown = Array.isArray(reply)
      ? reply[1]
      : reply instanceof Map
        ? reply.get(name)
        : (reply as Record<string, unknown>)[name]
    if (typeof value === 'string' || Buffer.isBuffer(value)) settings.set(name, String(value))
  }
  return settings
}

/** Says why a store with durable fencing cannot be used, or nothing. */
export async function checkDurable(driver: Driver, prefix: string): Promise<Unknown | undefined> {
  try {
    const [node] = await driver.primaries()
    if (node === undefined) return undefined
    if (await isForCluster(node)) return unknownForGood(notInCluster())
    const problem = await durableProblem(node)
    if (problem !== undefined)
      return unknownForGood(
        new UnsupportedError(`Durable fencing needs another server: ${problem}.`, { store: 'redis' }),
      )
    const marked = await node.send(['exists', markKey(prefix)])
    if (!doneOf(marked)) return unknownForGood(notMarked())
    // Whether it may count at all.
    await node.send(['incrby', markKey(prefix), '0'])
    return undefined
  } catch (error) {
    return failed(error)
  }
}

/** Marks a server as one that may count tokens. Once, when it is set up; never by a program that starts by itself. */
export async function markDurable(driver: Driver, prefix: string): Promise<void> {
  const refusal = severalServers(driver)
  if (refusal !== undefined) throw refusal
  const [node] = await driver.primaries()
  if (node !== undefined && (await isForCluster(node))) throw notInCluster()
  const problem = node && (await durableProblem(node))
  if (problem !== undefined)
    throw new UnsupportedError(`Durable fencing needs another server: ${problem}.`, { store: 'redis' })
  await node?.send(['set', markKey(prefix), await firstToken(node), 'NX'])
}

/** A year of microseconds. */
const AHEAD = 365 * 86_400 * 1e6

/**
 * Above every token that the other fencing, which follows the clock, has given so far, and above all that processes with it
 * still give while the fleet changes over.
 */
async function firstToken(node: Node): Promise<string> {
  const [seconds, micros] = (await node.send(['time'])) as readonly unknown[]
  return String(Number(String(seconds)) * 1e6 + Number(String(micros)) + AHEAD)
}

/** Why the counter of a client's servers is not one that never goes back, as far as the client says. */
export function severalServers({ cluster, sentinels, connectionless }: Driver): UnsupportedError | undefined {
  if (cluster) return notInCluster()
  if (connectionless === true)
    return new UnsupportedError(
      'Durable fencing needs a client with a connection of its own: over HTTP the server cannot be asked how it is set up. Use ioredis or redis, or the default fencing.',
      { store: 'redis' },
    )
  if (sentinels !== true) return undefined
  return new UnsupportedError(
    'Durable fencing needs one server: after a failover a replica that lags would count the same numbers again. Use one server, or the default fencing.',
    { store: 'redis' },
  )
}

function notInCluster(): UnsupportedError {
  return new UnsupportedError(
    'Durable fencing needs one server: in a Redis Cluster no mark can stand beside every counter. Use one server, or the default fencing.',
    { store: 'redis' },
  )
}

function notMarked(): UnsupportedError {
  return new UnsupportedError(
    'Durable fencing needs a server that was prepared for it. If this one is new, call prepareDurableFencing once; if it was, it has lost its data, and old tokens would be given out again.',
    { store: 'redis' },
  )
}
