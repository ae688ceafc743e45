import type { NodeRedisBase, PlainClient } from './node-redis.ts'

const { setTimeout, clearTimeout, setImmediate } = globalThis

/** What it takes to try a connection, and to give it up. */
export type Attempted = Pick<PlainClient, 'isOpen' | 'on' | 'connect' | 'destroy' | 'disconnect'>

/** Those that have reached a server. */
const reached = new WeakSet<Attempted>()

/**
 * Connects a client that does not connect again by itself, and does something with it; rejects and ends the connection if
 * that fails or takes too long.
 */
export async function connectWithin<T>(client: Attempted, ms: number, use: () => Promise<T>): Promise<T> {
  client.on('error', () => {})
  client.on('connect', () => reached.add(client))
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  })
  const done = client.connect().then(use)
  try {
    return await Promise.race([done, late])
  } catch (error) {
    // Whatever comes of it now, nobody looks at it any more.
    done.catch(() => {})
    abandon(client)
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Ends the connection whatever its state. The driver forgets one that is just being made when it is told to end it, and that
 * one then comes about and stays. So the end waits until there is something to end.
 */
export function abandon(client: Attempted): void {
  if (reached.has(client)) return end(client)
  // A little later: the driver would wait for ever for what it is about to send.
  client.on('connect', () => void setImmediate(() => end(client)))
}

export function end(client: Pick<NodeRedisBase, 'isOpen' | 'destroy' | 'disconnect'>): void {
  if (!client.isOpen) return
  if (client.destroy === undefined) client.disconnect?.().catch(() => {})
  else client.destroy()
}
