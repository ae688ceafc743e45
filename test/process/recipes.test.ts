import { spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import { available, postgres, redis, redisCommand } from '../../scripts/services.mjs'
import type { Server } from '../../scripts/services.mjs'

const program = fileURLToPath(new URL('recipes-child.mjs', import.meta.url))

/** A process of the fleet. */
class Member {
  readonly child: ChildProcessWithoutNullStreams
  private readonly lines: AsyncIterator<string>
  private stderr = ''

  constructor(task: object) {
    this.child = spawn(process.execPath, ['--unhandled-rejections=strict', program, JSON.stringify(task)])
    this.child.stderr.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()))
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]()
    members.push(this)
  }

  /** What it says next. */
  async says(): Promise<unknown> {
    const { value, done } = (await this.lines.next()) as { value: string; done?: boolean }
    if (done === true) throw new Error(`it ended: ${this.stderr}`)
    return JSON.parse(value)
  }

  async ready(): Promise<this> {
    const said = await this.says()
    if (said !== 'ready') throw new Error(`it said ${JSON.stringify(said)}`)
    return this
  }

  go(): void {
    this.child.stdin.write('go\n')
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal)
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const exit = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await exit
  }
}

const members: Member[] = []
afterEach(async () => void (await Promise.all(members.splice(0).map((member) => member.end()))))

interface Belief {
  readonly token: string
  readonly from: number
  readonly to: number
  readonly ended: string
}

const stores = [
  { name: 'Redis', service: 'redis', start: redis },
  { name: 'PostgreSQL', service: 'postgres', start: postgres },
] as const

for (const { name, service, start } of stores) {
  describe.skipIf(!available(service) || !available('redis'))(`processes with locks in ${name}`, () => {
    let locks: Server
    let data: Server
    beforeAll(async () => {
      ;[locks, data] = await Promise.all([start(), redis()])
    })
    afterAll(() => Promise.all([locks.stop(), data.stop()]))
    beforeEach(async () => {
      await redisCommand(data, 'FLUSHALL')
      // A claim of the test before must not be in the way of the next.
      if (service === 'redis') await redisCommand(locks, 'FLUSHALL')
    })

    const fleet = (size: number, recipe: string, task: object): Promise<Member[]> =>
      Promise.all(
        Array.from({ length: size }, () =>
          new Member({ recipe, url: locks.url, data: data.url, ...task }).ready(),
        ),
      )
    const member = async (recipe: string, task: object): Promise<Member> => {
      const [one] = await fleet(1, recipe, task)
      return one as Member
    }
    const queries = (): Promise<unknown> => redisCommand(data, 'GET', 'queries')

    it('ask the database once for 4 × 50 requests on a cold key', async () => {
      const all = await fleet(4, 'cached', { requests: 50, loadMs: 200, value: 'books' })
      for (const each of all) each.go()
      const said = await Promise.all(all.map((each) => untilSaid(each, Array.isArray)))
      expect(said).toEqual(Array(4).fill(['books']))
      expect(await queries()).toBe('1')
    })

    it('load what a killed loader did not', async () => {
      const victim = await member('cached', { requests: 1, loadMs: 60_000, value: 'never' })
      const heir = await member('cached', { requests: 3, loadMs: 10, value: 'books' })
      victim.go()
      expect(await victim.says()).toBe('loading')
      heir.go()
      victim.signal('SIGKILL')
      expect(await untilSaid(heir, Array.isArray)).toEqual(['books'])
      expect(await queries()).toBe('2')
    })

    it('keep what is newer when a loader wakes up that was stopped past its lease', async () => {
      const sleeper = await member('cached', { requests: 2, loadMs: 300, value: 'old' })
      const other = await member('cached', { requests: 1, loadMs: 10, value: 'new' })
      sleeper.go()
      expect(await sleeper.says()).toBe('loading')
      sleeper.signal('SIGSTOP')
      other.go()
      expect(await untilSaid(other, Array.isArray)).toEqual(['new'])
      sleeper.signal('SIGCONT')
      expect(await untilSaid(sleeper, Array.isArray)).toEqual(['new'])
      expect(await redisCommand(data, 'GET', 'cache:{categories}')).toBe('v:"new"')
    })

    it('have one leader at a time, also when it is stopped past its lease', async () => {
      const all = await fleet(3, 'leader', {})
      const elections = all.map(async (each) => {
        if ((await each.says()) !== 'elected') throw new Error('it said something else')
        return each
      })
      const first = await Promise.race(elections)
      first.signal('SIGSTOP')
      const others = all.filter((each) => each !== first)
      await Promise.race(elections.filter((_, n) => all[n] !== first))
      first.signal('SIGCONT')
      const before = (await first.says()) as Belief
      for (const each of others) each.go()
      const said = await Promise.all(others.map((each) => restOf(each)))
      // One of them may end without ever having been elected.
      await Promise.allSettled(elections)
      const after = said.flat().filter((each): each is Belief => typeof each === 'object')
      expect(before.ended).toMatch(/LOCK_LOST|by the clock/)
      expect(after.length).toBeGreaterThan(0)
      for (const { from, token } of after) {
        expect(from).toBeGreaterThan(before.to)
        expect(BigInt(token)).toBeGreaterThan(BigInt(before.token))
      }
    })

    it('run a job once, and know of it when the one that ran it is gone', async () => {
      const all = await fleet(4, 'once', { jobMs: 100, value: 'report' })
      for (const each of all) each.go()
      const said = (await Promise.all(all.map((each) => restOf(each)))).flat()
      expect(said.filter((each) => each === 'running')).toHaveLength(1)
      const late = await member('once', { jobMs: 100, value: 'again' })
      late.go()
      expect(await restOf(late)).toEqual([{ kind: 'skipped' }])
    })

    it('share the result of a job through a memory', async () => {
      const first = await member('once', { jobMs: 10, value: 'report 7', memory: true, ttl: 2000 })
      first.go()
      await restOf(first)
      const second = await member('once', { jobMs: 10, value: 'again', memory: true })
      second.go()
      const [said] = await restOf(second)
      expect(said).toEqual({ kind: 'skipped', last: { kind: 'result', value: 'report 7' } })
    })

    it('sell 100 tickets in 4 segments to 160 customers, each seat once, although one seller is stopped for a while', async () => {
      const task = { segments: 4, customers: 40, ttl: 800 }
      const [filler, ...rest] = [
        await member('stock', { ...task, fill: 100 }),
        ...(await fleet(3, 'stock', task)),
      ] as [Member, ...Member[]]
      for (const each of [filler, ...rest]) each.go()
      rest[0]?.signal('SIGSTOP')
      setTimeout(() => rest[0]?.signal('SIGCONT'), 2000)
      const seats = (await Promise.all([filler, ...rest].map((each) => restOf(each)))).flat(2)
      expect(new Set(seats).size).toBe(seats.length)
      expect(seats).toHaveLength(100)
    })
  })
}

/** Reads on until it says something of a kind. */
async function untilSaid(member: Member, fits: (said: unknown) => boolean): Promise<unknown> {
  for (;;) {
    const said = await member.says()
    if (fits(said)) return said
  }
}

/** All that it still says. */
async function restOf(member: Member): Promise<unknown[]> {
  const said: unknown[] = []
  for (;;) {
    try {
      said.push(await member.says())
    } catch (error) {
      if (!String(error).endsWith('it ended: ')) throw error
      return said
    }
  }
}
