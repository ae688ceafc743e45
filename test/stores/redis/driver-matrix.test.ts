import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, it } from 'vitest'

import { Holdfast } from 'holdfast'
import { fencedWrite, redisStore } from 'holdfast/redis'

import { available, redis, redisCluster, redisCommand } from '../../../scripts/services.mjs'
import type { RedisCluster, Server } from '../../../scripts/services.mjs'
import { COMBINATIONS } from './driver-matrix.ts'
import type { Combination, Place } from './driver-matrix.ts'
import { leftoversAt } from './leftovers.ts'

const ROUNDS = 5

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => void probe.close(resolve))
  return port
}

/** Makes a certificate for this machine, and gives the server's arguments. */
function tlsArgs(dir: string, port: number): string[] {
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')]
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
  execFileSync('openssl', [...made, '-keyout', key, '-out', cert], { stdio: 'ignore' })
  const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert]
  return ['--tls-port', String(port), ...files, '--tls-auth-clients', 'no']
}

/** Every driver with every option that people set: a short fight, a loss that is told, a write that is fenced, nothing left. */
describe.skipIf(!available('redis-cluster'))('a client of', () => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-matrix-'))
  let server: Server
  let cluster: RedisCluster
  let place: Place
  beforeAll(async () => {
    const [socket, tlsPort] = [join(dir, 'redis.sock'), await freePort()]
    server = await redis({ args: ['--unixsocket', socket, ...tlsArgs(dir, tlsPort)] })
    cluster = await redisCluster({ primaries: 3, replicas: 1 })
    const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }))
    place = { port: server.port, socket, tlsPort, nodes }
  })
  afterAll(async () => {
    await Promise.all([server.stop(), cluster.stop()])
    rmSync(dir, { recursive: true, force: true })
  })
  const serversOf = (one: Combination): readonly Server[] => (one.cluster ? cluster.primaries : [server])

  it.concurrent.for(COMBINATIONS)('$label', async (one, { expect }) => {
    const prefix = one.label.replaceAll(/\W+/g, '-')
    const clients = await Promise.all([0, 1].map(() => one.connect(place)))
    const stores = clients.map(({ client }) => redisStore(client, { prefix }))
    const holdfasts = stores.map((store) => new Holdfast(store, { ttl: 15_000, wait: 30_000 }))
    let inside = 0
    const tokens: bigint[] = []
    await Promise.all(
      holdfasts.map(async (holdfast) => {
        for (let round = 0; round < ROUNDS; round++) {
          const lease = await holdfast.mutex('one').acquire()
          expect(++inside).toBe(1)
          tokens.push(lease.token)
          await new Promise(setImmediate)
          inside--
          expect(await lease.release()).toBe('released')
          await holdfast.semaphore('pool', 2).run(() => {})
        }
      }),
    )
    expect(tokens.length).toBe(2 * ROUNDS)
    expect(tokens.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(tokens)

    const [client] = clients
    const write = { key: `{${prefix}}`, value: 'x', token: 7n }
    expect(await fencedWrite(client!.client, write)).toEqual({ accepted: true, token: 7n })
    expect(await fencedWrite(client!.client, { ...write, token: 6n })).toEqual({ accepted: false, token: 7n })

    if (!one.cluster) {
      // Where the program's own commands look for it.
      const look = `redis.call('SELECT', ARGV[2]) return redis.call('GET', ARGV[1])`
      expect(await redisCommand(server, 'EVAL', look, 0, one.keyPrefix + write.key, one.db)).toBe('x')
    }

    // A lease whose record is gone is lost with the next renewal, and not when its time is up.
    const [holdfast] = holdfasts
    const lease = await holdfast!.mutex('lost').acquire({ ttl: 4_000 })
    const drop = `redis.call('SELECT', ARGV[2])
      for _, key in ipairs(redis.call('KEYS', ARGV[1] .. ':{lost}')) do redis.call('DEL', key) end`
    for (const at of serversOf(one)) {
      // A Cluster has no databases, and a script of its servers no SELECT.
      const script = one.cluster ? drop.slice(drop.indexOf('for')) : drop
      await redisCommand(at, 'EVAL', script, 0, one.keyPrefix + prefix, one.db)
    }
    if (!lease.signal.aborted) await once(lease.signal, 'abort')
    expect(String(lease.signal.reason)).toContain('does not know it any more')

    for (const each of holdfasts) await each.close()
    for (const store of stores) await store.close()
    for (const { end } of clients) await end()
    for (const at of serversOf(one)) {
      const left = (): Promise<string[]> => leftoversAt(at, one.keyPrefix + prefix, one.db)
      // The server hears of a closed subscription when it comes to it.
      await expect.poll(left, { timeout: 10_000 }).toEqual([])
    }
  })
})
