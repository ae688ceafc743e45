import type { ZooKeeper } from './client/index.ts'
import { hasCode } from './client/index.ts'
import { SEMAPHORE_GATE, SEMAPHORE_LEASES } from './position.ts'
import { noChildren } from './own-node.ts'

/**
 * Curator's second semaphore: whoever wants leases goes through a mutex below `locks`, and while he has it adds a node for each
 * below `leases` and waits until there are not too many of them. How many are too many is only agreed upon between
 * the users; ours write it into the node `leases`, where Curator writes nothing.
 */

export function gateOf(dir: string): string {
  return `${dir}/${SEMAPHORE_GATE}`
}

export function leasesOf(dir: string): string {
  return `${dir}/${SEMAPHORE_LEASES}`
}

/** Null: nothing was agreed upon. */
export function parseCapacity(data: Buffer): number | null {
  const text = data.toString()
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : null
}

/** The capacity of a semaphore that is in use in this directory; null: none is. */
export async function semaphoreCapacity(zk: ZooKeeper, dir: string): Promise<number | null> {
  const [waiting, held, agreed] = await Promise.all([
    zk.getChildren(gateOf(dir)).catch(noChildren),
    zk.getChildren(leasesOf(dir)).catch(noChildren),
    zk.getData(leasesOf(dir)).catch((error: unknown) => {
      if (hasCode(error, 'NO_NODE')) return null
      throw error
    }),
  ])
  if (waiting.children.length + held.children.length === 0) return null
  return (agreed === null ? null : parseCapacity(agreed.data)) ?? Math.max(2, held.children.length)
}
