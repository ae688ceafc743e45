import { setTimeout as sleep } from 'node:timers/promises'

import { Redis } from 'ioredis'

import { FaultProxy } from '../../testkit/fault-proxy.ts'
import type { ServerHandle } from '../live/servers.ts'
import type { RedisPair } from './specimen.ts'

export type StartedServer = ServerHandle & { stop(): Promise<void> }

/** Two servers and a link between them that can be broken, made with whatever starts a Redis on this machine. */
export async function redisPair(
  start: (options: { args?: readonly string[] }) => Promise<StartedServer>,
): Promise<RedisPair> {
  const primary = await start({})
  const link = await FaultProxy.open(primary)
  const replica = await start({ args: ['--replicaof', link.host, String(link.port)] })
  const admin = new Redis({ host: replica.host, port: replica.port })
  admin.on('error', () => undefined)
  while (!(await admin.info('replication')).includes('master_link_status:up')) await sleep(20)
  return {
    primary,
    replica,
    // What the primary tells its replica are, for the proxy, replies.
    isolate: () => link.set('replies', { blackhole: true }),
    async failover() {
      await primary.kill('SIGKILL')
      await admin.replicaof('NO', 'ONE')
    },
    async stop() {
      admin.disconnect()
      await link.close()
      await Promise.all([primary.stop(), replica.stop()])
    },
  }
}
