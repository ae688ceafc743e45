import { hasCode } from './client/index.ts'
import type { ZooKeeper } from './client/index.ts'

/** Whether there was such a node to remove. */
export function removeNode(zk: Pick<ZooKeeper, 'write'>, path: string): Promise<boolean> {
  return zk.write({ kind: 'delete', path }).then(wasThere, wasNotThere)
}

const wasThere = (): boolean => true

function wasNotThere(error: unknown): boolean {
  if (hasCode(error, 'NO_NODE')) return false
  throw error
}
