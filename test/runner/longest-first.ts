import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

/**
 * The files that take longest, the longest first, so that none of them is alone at the end of a run. What is missing here, or has
 * become faster, costs time and nothing else.
 */
export const LONGEST = [
  'test/conformance/redis.test.ts',
  'test/stores/redis/sentinel.test.ts',
  'test/lab/live/redis.test.ts',
  'test/lab/live/stores.test.ts',
  'test/lab/cli/lab.test.ts',
  'test/conformance/zookeeper.test.ts',
  'test/conformance/memcached.test.ts',
  'test/fleet/servers.test.ts',
  'test/stores/sqlite/matrix.test.ts',
  'test/conformance/postgres.test.ts',
  'test/conformance/mysql.test.ts',
  'test/lab/live/plants.test.ts',
  'test/stores/mysql/transactions.test.ts',
  'test/conformance/holdfast.test.ts',
  'test/conformance/memory.test.ts',
  'test/conformance/quorum.test.ts',
  'test/stores/redis/replicas.test.ts',
  'test/stores/redis/driver-matrix.test.ts',
  'test/stores/redis/cluster.test.ts',
  'test/stores/postgres/transactions.test.ts',
  'test/stores/memcached/faults.test.ts',
  'test/stores/zookeeper/curator.test.ts',
  'test/stores/quorum/set-up.test.ts',
  'test/cli/looking.test.ts',
  'test/stores/redis/durable.test.ts',
  'test/stores/zookeeper/ensemble.test.ts',
]

const rank = ({ moduleId }: TestSpecification): number => {
  const at = LONGEST.findIndex((path) => moduleId.endsWith(`/${path}`))
  return at === -1 ? LONGEST.length : at
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => rank(one) - rank(other))
  }
}
