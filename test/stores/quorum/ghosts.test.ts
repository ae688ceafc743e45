import { setTimeout as sleep } from 'node:timers/promises'

import { expect, it } from 'vitest'

import { Holdfast } from 'holdfast'

import { available, redisCommand } from '../../../scripts/services.mjs'
import { openAt, startServers, stopAll } from './kit.ts'
import { votesLeftAt } from './leftovers.ts'

it.skipIf(!available('redis'))('leaves nothing behind, also where a server forgets its scripts', async () => {
  const servers = await startServers(5)
  const holdfast = new Holdfast(await openAt(servers), { ttl: 2_000, closeStore: true })
  const lock = holdfast.mutex('x')
  for (let round = 0; round < 200; round++) {
    if (round % 40 === 20) for (const server of servers) await redisCommand(server, 'SCRIPT', 'FLUSH')
    await (await lock.acquire()).release()
  }
  await sleep(200)
  const left = await Promise.all(servers.map((server) => votesLeftAt(server)))
  await holdfast.close()
  await stopAll(servers)
  expect(left.flat()).toEqual([])
})

it.skipIf(!available('redis'))('is had at the first try where all servers forgot their scripts', async () => {
  const servers = await startServers(3)
  const holdfast = new Holdfast(await openAt(servers), { ttl: 2_000, closeStore: true })
  for (let round = 0; round < 20; round++) {
    for (const server of servers) await redisCommand(server, 'SCRIPT', 'FLUSH')
    const lease = await holdfast.mutex('x').tryAcquire()
    expect(lease).not.toBeNull()
    await lease?.release()
  }
  await sleep(200)
  const left = await Promise.all(servers.map((server) => votesLeftAt(server)))
  await holdfast.close()
  await stopAll(servers)
  expect(left.flat()).toEqual([])
})
