import { describe, expect, it } from 'vitest'

import { Hearing } from '../../../../src/stores/redis/hearing.ts'
import type { Link } from '../../../../src/stores/redis/link.ts'

/** A Cluster of three, of which so many take a word and pass it on. */
function clusterOf(takes: readonly (() => Promise<unknown>)[]): Hearing {
  const primaries = takes.map((take) => ({
    send: async ([, , word = '']: readonly string[]) => {
      await take()
      hearing.heard(word)
    },
  }))
  const link = { cluster: true, primaries: () => Promise.resolve(primaries) }
  const hearing = new Hearing(link as unknown as Link)
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
