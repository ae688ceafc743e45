import { describe, expect, it } from 'vitest'

import type { Unknown } from '../../../../src/core/contract.ts'
import { UnsupportedError } from '../../../../src/core/errors.ts'
import { checkNode, quorum } from '../../../../src/stores/quorum/startup-checks.ts'
import type { Driver } from '../../../../src/stores/redis/client/driver.ts'
import { StartedFromSnapshot } from '../../../../src/stores/redis/votes/unused.ts'
import { VirtualEnv } from '../../../../src/testkit/virtual-env.ts'
import { member } from './kit.ts'
import type { Steer } from './kit.ts'

const PROBATION = 30_000

/** A server that tells its settings, and nothing else of itself. */
function driverFor(settings: Readonly<Record<string, string>>): Driver {
  const send = (command: readonly string[]): Promise<unknown> => {
    const [what, , name = ''] = command
    if (what === 'time') return Promise.resolve([String(Math.floor(Date.now() / 1000)), '0'])
    if (what === 'info') return Promise.resolve('redis_version:7.0.0\r\nrole:master\r\n')
    if (settings[name] === 'forbidden') return Promise.reject(new Error('NOPERM'))
    return Promise.resolve(name in settings ? [name, settings[name]] : [])
  }
  return { cluster: false, primaries: () => Promise.resolve([{ send }]) } as unknown as Driver
}

const GOOD = { maxmemory: '0', 'maxmemory-policy': 'noeviction', appendonly: 'yes', save: '' }

describe('what an operator hears of a server of a quorum', () => {
  const check = (
    identify?: Steer,
    settings: Readonly<Record<string, string>> = GOOD,
    probe?: () => Promise<Unknown | undefined>,
  ) => {
    const env = new VirtualEnv()
    const { store, on } = member(env)
    if (identify !== undefined) on.identify = identify
    if (probe !== undefined && store.votes !== undefined) Object.assign(store.votes, { probe })
    return checkNode(
      { label: 'a:1', own: driverFor(settings), store },
      { probation: PROBATION, nodeTimeout: 50 },
    )
  }

  it('is that it votes', async () => {
    const votes: Steer = () => ({ kind: 'node', node: '1', readyIn: 0 })
    expect(await check(votes)).toEqual({
      readyIn: 0,
      findings: [{ level: 'ok', code: 'node', message: 'a:1 votes' }],
    })
  })

  it('is that it is too far away for its vote to be waited for, and what to set then', async () => {
    const { store, on } = member(new VirtualEnv())
    on.identify = () => ({ kind: 'node', node: '1', readyIn: 0 })
    const send = (): Promise<unknown> => new Promise((resolve) => void setTimeout(resolve, 20))
    const own = { cluster: false, primaries: () => Promise.resolve([{ send }]) } as unknown as Driver
    const { readyIn, findings } = await checkNode(
      { label: 'a:1', own, store },
      { probation: PROBATION, nodeTimeout: 10 },
    )
    expect(readyIn).toBe(undefined)
    expect(findings).toMatchObject([
      { level: 'warning', code: 'node', hint: expect.stringContaining('?nodeTimeout=') as string },
    ])
    expect(findings[0]?.message).toMatch(/^a:1 is too far away: .* for 10 ms$/)
  })

  it('is in how many seconds it votes, if it came up empty', async () => {
    const empty: Steer = () => ({ kind: 'node', node: '1', readyIn: 1_001 })
    expect(await check(empty)).toMatchObject({
      readyIn: 1_001,
      findings: [{ level: 'warning', message: 'a:1 came up empty, and votes in 2 s' }],
    })
  })

  it.each([
    ['does not answer: it is silent', 'warning', new Error('it is silent')],
    ['does not vote yet: it was started from a snapshot', 'warning', new StartedFromSnapshot(5_000)],
    ['cannot vote: it evicts', 'error', new UnsupportedError('it evicts', { store: 'redis' })],
  ])('is that it %s', async (says, level, cause) => {
    const { readyIn, findings } = await check(() => ({ kind: 'unknown', cause }))
    expect(readyIn).toBeUndefined()
    expect(findings).toMatchObject([{ level, message: expect.stringContaining(`a:1 ${says}`) as string }])
  })

  it('is that it takes no new votes, though it answers', async () => {
    const full = () => Promise.resolve({ kind: 'unknown', cause: new Error('OOM it is full') } as const)
    expect(await check(undefined, GOOD, full)).toEqual({
      readyIn: undefined,
      findings: [{ level: 'error', code: 'writes', message: 'a:1 takes no new votes: OOM it is full' }],
    })
  })

  it('is that it does not answer, when it throws', async () => {
    const throws: Steer = () => Promise.reject(new Error('gone'))
    expect(await check(throws)).toMatchObject({
      readyIn: undefined,
      findings: [{ level: 'warning', code: 'node', message: 'a:1 does not answer: gone' }],
    })
  })

  it.each([
    ['a log, and snapshots', { appendonly: 'yes', save: '3600 1' }, []],
    ['nothing', { appendonly: 'no', save: '' }, []],
    ['snapshots only', { appendonly: 'no', save: '3600 1' }, ['persistence']],
    ['what it does not tell', { appendonly: 'forbidden', save: '3600 1' }, []],
  ])('of what it keeps on disk, %s, is what matters to a vote', async (_, settings, codes) => {
    const votes: Steer = () => ({ kind: 'node', node: '1', readyIn: 0 })
    const { findings } = await check(votes, { ...GOOD, ...settings })
    expect(findings.slice(1).map(({ code }) => code)).toEqual(codes)
    for (const { message } of findings) expect(message).toMatch(/^a:1/)
  })

  it('is that it evicts keys, as of any server', async () => {
    const votes: Steer = () => ({ kind: 'node', node: '1', readyIn: 0 })
    const { findings } = await check(votes, { ...GOOD, maxmemory: '1', 'maxmemory-policy': 'allkeys-lru' })
    expect(findings.map(({ code }) => code)).toContain('eviction')
  })
})

describe('what an operator hears of a quorum', () => {
  it.each([
    [[0, 0, 0], 'ok', '3 servers: 1 may fail', undefined],
    [[0, 0, 0, 0, 0], 'ok', '5 servers: 2 may fail', undefined],
    [[0, 0, undefined], 'warning', '2 of 3 servers vote: none more may fail', undefined],
    [[0, 0, 0, 0, 500], 'warning', '4 of 5 servers vote: 1 more may fail', undefined],
    [[0, 0, 0, 0], 'warning', '4 servers: 1 may fail', '3 servers would stand as many failures.'],
    [[0, 0], 'warning', '2 servers: none may fail', 'One server would stand as many failures.'],
    [
      [0, undefined, undefined],
      'error',
      'only 1 of 3 servers can vote, and 2 have to agree: nobody gets a lock',
      undefined,
    ],
  ])('of which the servers vote in %o ms', (readyIn, level, message, hint) => {
    const finding = { level, code: 'quorum', message, ...(hint === undefined ? {} : { hint }) }
    expect(quorum(readyIn)).toEqual(finding)
  })

  it('is when a majority can vote, if that is known', () => {
    const { level, hint } = quorum([9_000, undefined, 1_500, 0, 4_001])
    expect(level).toBe('error')
    expect(hint).toMatch(/^They can in 5 s\./)
  })
})
