import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { group, startAll } from './group.mjs'
import { launch } from './process.mjs'
import { redis, redisPlan } from './redis.mjs'
import { redisCommand, until } from './wire.mjs'

const NAME = 'holdfast'

/**
 * One primary with replicas, watched by sentinels that fail over within seconds.
 * Returns when every sentinel knows every replica and every other sentinel: a failover works from then on.
 */
export async function sentinel({ replicas = 1, sentinels = 3, args = [], env, downAfter = 1_000 } = {}) {
  const first = await redis({ args, env })
  const started = [first]
  try {
    const replicaArgs = [...args, '--replicaof', first.host, String(first.port)]
    started.push(
      ...(await startAll(Array.from({ length: replicas }, () => () => redis({ args: replicaArgs, env })))),
    )
    const nodes = [...started]
    const plan = sentinelPlan({ primary: first, quorum: Math.floor(sentinels / 2) + 1, downAfter })
    const watchers = await startAll(Array.from({ length: sentinels }, () => () => launch(plan, { env })))
    started.unshift(...watchers)
    await Promise.all(watchers.map((watcher) => untilComplete(watcher, { replicas, sentinels })))
    return group(started, {
      name: NAME,
      sentinels: watchers,
      nodes,
      /** The node that the sentinels take for the primary now. */
      primary: async () => {
        const running = watchers.find(({ pid }) => pid !== undefined) ?? watchers[0]
        const [, port] = await redisCommand(running, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)
        return nodes.find((node) => node.port === Number(port))
      },
    })
  } catch (error) {
    await Promise.all(started.map((server) => server.stop()))
    throw error
  }
}

/** Sentinels rewrite their configuration, so it is a file in their folder, written once. */
function sentinelPlan({ primary, quorum, downAfter }) {
  const file = (dir) => join(dir, 'sentinel.conf')
  return redisPlan(({ dir }) => [file(dir), '--sentinel'], {
    prepare: ({ dir, port }) =>
      writeFileSync(
        file(dir),
        [
          `port ${port}`,
          'bind 127.0.0.1',
          `dir "${dir}"`,
          `sentinel monitor ${NAME} ${primary.host} ${primary.port} ${quorum}`,
          `sentinel down-after-milliseconds ${NAME} ${downAfter}`,
          `sentinel failover-timeout ${NAME} ${downAfter * 5}`,
          `sentinel parallel-syncs ${NAME} 1`,
          '',
        ].join('\n'),
      ),
  })
}

function untilComplete(watcher, { replicas, sentinels }) {
  return until(
    async () => {
      const reply = await redisCommand(watcher, 'SENTINEL', 'MASTER', NAME)
      const field = (name) => Number(reply[reply.indexOf(name) + 1])
      return field('num-slaves') === replicas && field('num-other-sentinels') === sentinels - 1
    },
    { what: 'sentinels that know each other and every replica' },
  )
}
