import { ZooKeeper } from '../../../src/stores/zookeeper/client/index.ts'

/** What the servers of scripts/services allow. */
export const MAX_SESSION_TIMEOUT = 100_000

/** Every node of a queue below a directory. The directories themselves are the server's to remove. */
export async function leftovers(connect: string, root = '/holdfast'): Promise<readonly string[]> {
  await using zk = new ZooKeeper(connect)
  await zk.connected()
  await zk.sync()
  const below = async (path: string): Promise<string[]> => {
    const { children } = await zk.getChildren(path).catch(() => ({ children: [] as string[] }))
    const deeper = await Promise.all(children.map((child) => below(`${path}/${child}`)))
    return [
      ...children.filter((child) => child.startsWith('_c_')).map((child) => `${path}/${child}`),
      ...deeper.flat(),
    ]
  }
  return await below(root)
}
