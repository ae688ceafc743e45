import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

import { describe, expect, it, onTestFinished } from 'vitest'

import { Hearing } from '../../../../src/stores/redis/hearing.ts'
import type { Driver } from '../../../../src/stores/redis/client/driver.ts'

/** A Cluster of three, of which so many take a word and pass it on. */
function clusterOf(takes: readonly (() => Promise<unknown>)[]): Hearing {
  const primaries = takes.map((take) => ({
    send: async ([, , word = '']: readonly string[]) => {
      await take()
      hearing.heard(word)
    },
  }))
  const link = { cluster: true, primaries: () => Promise.resolve(primaries) }
  const hearing = new Hearing(link as unknown as Driver)
  return hearing
}

const well = (): Promise<unknown> => Promise.resolve(1)
const frozen = (): Promise<unknown> => new Promise(() => {})
const dead = (): Promise<unknown> => Promise.reject(new Error('Connection is closed.'))

describe('a subscriber of a Cluster', () => {
  it.each([
    ['all are well', [well, well, well]],
    ['the first stands still', [frozen, well, well]],
    ['the first is dead', [dead, well, well]],
    ['two are away', [frozen, dead, well]],
  ])('is heard to hear while %s', async (_, servers) => {
    expect(await clusterOf(servers).hears(['channel'])).toBe(true)
  })

  it('is not called deaf when nobody takes a word', async () => {
    await expect(clusterOf([dead, dead, dead]).hears(['channel'])).rejects.toThrow('Connection is closed.')
  })
})

describe('a word that has come to a process that stands still', () => {
  it('is heard when it goes on, however long that was', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const listener = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const [speaker] = (await once(server, 'connection')) as [Socket]
    onTestFinished(() => {
      listener.destroy()
      server.close()
    })
    const send = ([, , word = '']: readonly string[]): Promise<number> => {
      speaker.write(word)
      return Promise.resolve(1)
    }
    const link = { cluster: true, primaries: () => Promise.resolve([{ send }]) }
    const hearing = new Hearing(link as unknown as Driver)
    listener.on('data', (text) => hearing.heard(String(text)))
    const hears = hearing.hears(['channel'])
    // The word is under way, and waited for, when these are over.
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    const until = performance.now() + 1_100
    while (performance.now() < until);
    expect(await hears).toBe(true)
  })
})
