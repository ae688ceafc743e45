import { hasCode } from './client/index.ts'
import type { ZooKeeper } from './client/index.ts'

/** Whether there was such a node to remove. */
export async function removeNode(zk: Pick<ZooKeeper, 'delete'>, path: string): Promise<boolean> {
  try {
    await zk.delete(path)
    return true
  } catch (error) {
    if (hasCode(error, 'NO_NODE')) return false
    throw error
  }
}
