import { hasCode } from './client/index.ts'
import type { ZooKeeper } from './client/index.ts'
import { encodeName } from './names.ts'
import { REVOKE } from './node-data.ts'
import { lineUp } from './position.ts'
import { noChildren } from './own-node.ts'

export interface RevocationOptions {
  /** The directory of all locks. Default `/holdfast`. */
  readonly root?: string
}

/**
 * Asks whoever holds a lock to let go, in Curator's way: nothing is forced, and a holder that does not listen for it goes on.
 * Returns how many holders were asked.
 */
export async function requestRevocation(
  client: ZooKeeper,
  name: string,
  { root = '/holdfast' }: RevocationOptions = {},
): Promise<number> {
  const dir = `${root}/${encodeName(name)}`
  const [, { children }] = await Promise.all([client.sync(dir), client.getChildren(dir).catch(noChildren)])
  const { line, held } = lineUp(children)
  const asked = await Promise.all(
    line.slice(0, held).map((node) =>
      client.setData(`${dir}/${node.name}`, REVOKE).then(
        () => 1,
        (error: unknown) => {
          if (hasCode(error, 'NO_NODE')) return 0
          throw error
        },
      ),
    ),
  )
  return asked.reduce((sum: number, one) => sum + one, 0)
}
