import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'

import { checkRedis, startupChecks } from 'holdfast/redis'
import type { StartupFinding } from 'holdfast/redis'

import { available, clockShim, redis, redisCluster, sentinel } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { findings } from '../../../src/stores/redis/startup-checks.ts'

const levels = (found: readonly StartupFinding[]): Record<string, string> =>
  Object.fromEntries(found.map(({ code, level }) => [code, level]))

describe('what is found about a server', () => {
  const report = (info: Record<string, string>, settings: Record<string, string> = {}, clockOffset = 0) =>
    findings({
      info: new Map(Object.entries({ redis_version: '7.4.1', role: 'master', ...info })),
      settings: new Map(Object.entries(settings)),
      clockOffset,
      roundTrip: 1,
    })
  const good = { 'maxmemory-policy': 'noeviction', maxmemory: '0', appendonly: 'yes', appendfsync: 'always' }

  it('is nothing to worry about on a server made for locks', () => {
    expect(levels(report({}, good))).toEqual({
      version: 'ok',
      eviction: 'ok',
      persistence: 'ok',
      clock: 'ok',
    })
  })

  it.each([
    ['an old version', { redis_version: '6.0.16' }, {}, 0, 'version', 'error'],
    ['a replica', { role: 'slave' }, {}, 0, 'role', 'error'],
    [
      'a primary that would take writes as a replica',
      {},
      { 'replica-read-only': 'no' },
      0,
      'role',
      'warning',
    ],
    ['eviction', {}, { 'maxmemory-policy': 'allkeys-lru', maxmemory: '100' }, 0, 'eviction', 'warning'],
    ['no persistence', {}, { appendonly: 'no', save: '' }, 0, 'persistence', 'warning'],
    ['snapshots only', {}, { appendonly: 'no', save: '3600 1' }, 0, 'persistence', 'warning'],
    ['a log that lags', {}, { appendfsync: 'everysec' }, 0, 'persistence', 'info'],
    ['replicas', { connected_slaves: '2' }, {}, 0, 'replicas', 'info'],
    ['a clock that is off', {}, {}, -5_000, 'clock', 'warning'],
    ['a clock that is far off', {}, {}, 7_200_000, 'clock', 'error'],
  ] as const)('tells of %s, and what to do', (_, info, settings, offset, code, level) => {
    const found = report(info, { ...good, ...settings }, offset).find((finding) => finding.code === code)
    expect(found).toMatchObject({ level })
    expect(level === 'info' || (found?.hint?.length ?? 0) > 20).toBe(true)
  })

  it('has nothing against replicas of a Cluster, which take no locks anyway', () => {
    const settings = { ...good, 'replica-read-only': 'no' }
    expect(levels(report({ cluster_enabled: '1' }, settings))).not.toHaveProperty('role')
  })

  it('calls Valkey by its name', () => {
    const [version] = report({ valkey_version: '8.1.0', redis_version: '7.2.4' }, good)
    expect(version).toEqual({ level: 'ok', code: 'version', message: 'Valkey 8.1.0' })
  })
})

describe.skipIf(!available('redis'))('the startup checks', () => {
  const servers: Server[] = []
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop()
  })
  const started = async <S extends Server>(server: Promise<S>): Promise<S> => {
    servers.push(await server)
    return server
  }

  it('ask a server through either driver, and say the same', async () => {
    const server = await started(
      redis({ args: ['--maxmemory', '100mb', '--maxmemory-policy', 'volatile-ttl'] }),
    )
    const one = new Redis(server.port)
    const two = createClient({ url: server.url })
    await two.connect()
    const expected = { version: 'ok', eviction: 'warning', persistence: 'warning', clock: 'ok' }
    expect(levels(await startupChecks(one))).toEqual(expected)
    expect(levels(await startupChecks(two))).toEqual(expected)
    expect(levels(await checkRedis(server.url, { driver: 'redis' }))).toEqual(expected)
    one.disconnect()
    two.destroy()
  })

  it('see a clock that is not ours', async () => {
    const clock = await clockShim()
    const server = await started(redis({ env: clock.env }))
    clock.jump(600_000)
    expect(levels(await checkRedis(server.url))).toMatchObject({ clock: 'warning' })
    clock.dispose()
  })

  it('count replicas behind Sentinel, and ask every primary of a Cluster once', async () => {
    const group = await started(sentinel())
    const [host] = group.sentinels
    const found = await checkRedis(`redis+sentinel://127.0.0.1:${host?.port}/${group.name}`)
    expect(levels(found)).toMatchObject({ replicas: 'info' })
    const cluster = await started(redisCluster())
    const inCluster = await checkRedis(`redis+cluster://127.0.0.1:${cluster.nodes[0]?.port}`)
    expect(inCluster.filter(({ code }) => code === 'persistence').length).toBe(1)
  })

  it('fail with a clear error where there is no server', async () => {
    await expect(checkRedis('redis://127.0.0.1:1')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})
