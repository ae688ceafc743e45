import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import type { ClaimAnswer, Store } from 'holdfast/store'
import { openRedlockStore } from 'holdfast/quorum'
import { redisStore } from 'holdfast/redis'

import { available, redisCommand } from '../../../scripts/services.mjs'
import type { Server } from '../../../scripts/services.mjs'
import { request, startServers, stopAll, urlOf } from './kit.ts'

/** Short leases: servers are older than the longest one soon. */
const MAX_TTL = 1_000
/** Whole seconds, so one more. */
const OLD_MS = MAX_TTL + 2_000

describe.skipIf(!available('redis'))('a quorum that nobody has used yet', () => {
  let servers: Server[]
  const stores: Store[] = []
  beforeEach(async () => void (servers = await startServers(3)))
  afterEach(async () => {
    await Promise.all(stores.splice(0).map(async (store) => store.close()))
    await stopAll(servers)
  })

  const grownOld = async (at: readonly Server[] = servers): Promise<void> => {
    for (const server of at) {
      await expect
        .poll(() => uptime(server), { timeout: OLD_MS * 3, interval: 50 })
        .toBeGreaterThanOrEqual(MAX_TTL / 1000 + 1)
    }
  }

  const first = async (maxTtl = MAX_TTL, name = 'x'): Promise<ClaimAnswer> => {
    const store = await openRedlockStore(urlOf(servers), { maxTtl })
    stores.push(store)
    return store.claim(request(name, `${stores.length}.1`, 500), 1_000)
  }

  /** Since when they do: one that was let vote at once has since its start. On a busy machine they may be through by now. */
  const lookingOn = async (at: readonly Server[]): Promise<number> => {
    const since = await Promise.all(at.map((server) => redisCommand(server, 'GET', 'hf:v:node')))
    return Math.min(...since.map(Number))
  }

  it('votes at once when all of its servers have been up for longer than any lease', async () => {
    await grownOld()
    expect((await first()).kind).toBe('held')
    // And from then on it is one that was used.
    expect(await lookingOn(servers)).toBeLessThan(Date.now() - MAX_TTL)
  })

  it('votes at once for all who come at the same time', async () => {
    await grownOld()
    const answers = await Promise.all(Array.from({ length: 8 }, () => first()))
    // Whoever came second is told that it is taken, and not that nobody can vote.
    expect(answers.map(({ kind }) => kind)).not.toContain('unknown')
  })

  it('does not vote at once for who takes longer leases than the one that found it unused', async () => {
    await grownOld()
    expect((await first(MAX_TTL, 'other')).kind).toBe('held')
    expect(await first(60_000)).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE' } })
  })

  it('looks on while its servers have not been up for so long', async () => {
    await grownOld()
    expect(await first(60_000)).toMatchObject({ kind: 'unknown', cause: { code: 'QUORUM_UNAVAILABLE' } })
  })

  // Of one server each. All the others are as new as can be.
  it.each<[string, (server: Server) => Promise<unknown>]>([
    ['has run a script', (server) => redisCommand(server, 'EVAL', 'return 1', 0)],
    [
      'was emptied after it had voted',
      async (server) => {
        await redisCommand(server, 'EVAL', "return redis.call('HSET', KEYS[1], 'f', 1)", 1, 'hf:v:{x}')
        await redisCommand(server, 'FLUSHALL')
      },
    ],
    [
      'has had its statistics set back',
      async (server) => {
        await redisCommand(server, 'EVAL', 'return 1', 0)
        await redisCommand(server, 'CONFIG', 'RESETSTAT')
      },
    ],
    [
      'was a replica',
      async (server) => {
        const [{ host, port }] = servers.filter((other) => other !== server) as [Server]
        await redisCommand(server, 'REPLICAOF', host, port)
        await redisCommand(server, 'REPLICAOF', 'NO', 'ONE')
      },
    ],
    [
      'was a replica, and has forgotten whose',
      async (server) => {
        const [{ host, port }] = servers.filter((other) => other !== server) as [Server]
        await redisCommand(server, 'CONFIG', 'SET', 'repl-backlog-ttl', 1)
        await redisCommand(server, 'REPLICAOF', host, port)
        const said = async (): Promise<string> => String(await redisCommand(server, 'INFO', 'replication'))
        await expect.poll(said, { timeout: 10_000 }).toContain('master_link_status:up')
        await redisCommand(server, 'REPLICAOF', 'NO', 'ONE')
        await expect.poll(said, { timeout: 10_000 }).toContain('master_replid2:00000000')
      },
    ],
    ['does not tell', (server) => forbid(server, '-info +info|server')],
    ['has just been started', (server) => server.restart()],
  ])('looks on if one of its servers %s, and lets no other vote either', async (_what, happen) => {
    await grownOld()
    await happen(servers[1] as Server)
    const asked = Date.now()
    await first()
    expect(await lookingOn(servers)).toBeGreaterThanOrEqual(asked)
  })

  it('looks on if one of its servers is not there', async () => {
    await grownOld()
    await servers[2]?.kill('SIGKILL')
    const asked = Date.now()
    await first()
    expect(await lookingOn(servers.slice(0, 2))).toBeGreaterThanOrEqual(asked)
  })

  it('lets no server vote at once that takes the place of another one', async () => {
    await grownOld()
    expect((await first()).kind).toBe('held')
    // As new as the first ones were, and it knows nothing of what the one before it granted.
    const [stranger] = (await startServers(1)) as [Server]
    await grownOld([stranger])
    const [, ...others] = servers
    await servers[0]?.stop()
    servers = [stranger, ...others]
    const asked = Date.now()
    const store = await openRedlockStore(urlOf(servers), { maxTtl: MAX_TTL })
    stores.push(store)
    await store.claim(request('y', '9.1', 500), 1_000)
    expect(await lookingOn([stranger])).toBeGreaterThanOrEqual(asked)
  })
})

describe.skipIf(!available('redis'))('a server that was found unused', () => {
  let server: Server
  let store: Store
  let client: Redis
  beforeAll(async () => {
    server = (await startServers(1))[0] as Server
    client = new Redis(server.port, server.host)
    store = redisStore(client)
  })
  afterAll(async () => {
    await store.close()
    client.disconnect()
    await server.stop()
  })

  interface Proof {
    unused(probation: number, timeout: number): Promise<{ kind: string; server?: string }>
    begin(server: string, timeout: number): Promise<{ kind: string }>
  }

  it('is let vote only if it still is, and still is that server', async () => {
    const votes = store.votes as unknown as Proof
    await expect.poll(() => uptime(server), { timeout: 5_000 }).toBeGreaterThanOrEqual(1)
    const { server: id = '' } = await votes.unused(0, 1_000)
    expect(id).toMatch(/^\w{40}$/)
    expect(await votes.unused(3_600_000, 1_000)).toEqual({ kind: 'used' })
    // Scripts ran since: that of the refusal is one.
    expect(await votes.begin('0'.repeat(40), 1_000)).toEqual({ kind: 'used' })
    expect(await votes.begin(id, 1_000)).toEqual({ kind: 'used' })
    expect(await redisCommand(server, 'EXISTS', 'hf:v:node')).toBe(0)
  })
})

describe.skipIf(!available('redis'))('a server that evicts keys', () => {
  it.each(['volatile-lru', 'allkeys-lru'])(
    'does not vote with %s, and the error says why',
    async (policy) => {
      const servers = await startServers(3, { args: ['--maxmemory', '100mb', '--maxmemory-policy', policy] })
      const opened = openRedlockStore(urlOf(servers), { setUp: 'now' })
      await expect(opened).rejects.toThrow(/evicts keys when its memory is full .* noeviction/)
      await stopAll(servers)
    },
  )
})

async function uptime(server: Server): Promise<number> {
  const info = String(await redisCommand(server, 'INFO', 'server'))
  return Number(/^uptime_in_seconds:(\d+)/m.exec(info)?.[1])
}

const forbid = (server: Server, rules: string): Promise<unknown> =>
  redisCommand(server, 'ACL', 'SETUSER', 'default', ...rules.split(' '))
