import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { Holdfast } from '../../locks/holdfast.ts'
import type { HoldfastOptions } from '../../locks/options.ts'
import { openStore } from '../../open.ts'
import type { ClaimShape, RecordedLease, Recorder, Story } from '../../testkit/history.ts'
import { spawnTaker } from '../../testkit/taker.ts'
import type { Taker } from '../../testkit/taker.ts'
import { compiled } from '../live/compiled.ts'
import { Diary } from '../live/diary.ts'
import type { ViolationRecord } from '../record.ts'
import { Register } from '../resource/register.ts'
import type { Servers } from './specimen.ts'

/** What a client of a flawed design believes: that the lock is its own from now on, for a while or until it says otherwise. */
export function belief(token: bigint, ms: number = 3_600_000): RecordedLease {
  const until = performance.now() + ms
  return { token, remaining: () => Math.max(0, until - performance.now()) }
}

/** One client in a play: what it does is written down. */
export class Actor {
  readonly label: string
  private readonly recorder: Recorder
  private readonly name: string
  private readonly shape: ClaimShape
  private story: Story | undefined

  constructor(label: string, recorder: Recorder, name: string, shape: ClaimShape) {
    this.label = label
    this.recorder = recorder
    this.name = name
    this.shape = shape
  }

  /** Asks once. Null: it was not given the lock. */
  async tries<L extends RecordedLease>(ask: () => Promise<L | null>): Promise<L | null> {
    const story = this.recorder.acquire(this.name, this.shape)
    const lease = await ask()
    if (lease === null) story.failed()
    else {
      this.story = story
      story.acquired(lease)
    }
    return lease
  }

  /** Asks, and is sure to get it: otherwise the play has gone wrong. */
  async takes<L extends RecordedLease>(ask: () => Promise<L | null>): Promise<L> {
    const lease = await this.tries(ask)
    if (lease === null) throw new Error(`${this.label} was to have the lock and did not get it`)
    return lease
  }

  async releases(give: () => Promise<unknown>): Promise<void> {
    this.story?.releasing()
    await give()
    this.story?.released('released')
  }

  /** It still believes now. For leases that were renewed since. */
  believes(lease: RecordedLease): void {
    this.story?.check(lease)
  }
}

/** What happens on the way through one scenario, and everything that has to be tidied up after it. */
export class Play {
  readonly servers: Servers
  readonly diary: Diary = new Diary()
  /** A lock's name of its own. */
  readonly name: string = `lab-${randomBytes(4).toString('hex')}:seat`
  readonly actors: Actor[] = []
  readonly violations: ViolationRecord[] = []
  /** Checks that the play made itself, besides those of the history. */
  readonly checked: Set<string> = new Set()
  /** What was counted, in words, whether it was too much or not. */
  readonly measures: Map<string, string> = new Map()
  readonly resources: { readonly fenced: Register; readonly unfenced: Register } = {
    fenced: new Register(true),
    unfenced: new Register(false),
  }
  private readonly endings: (() => Promise<unknown>)[] = []
  private tokens = 0n

  constructor(servers: Servers) {
    this.servers = servers
  }

  /** Default: somebody who takes a mutex. */
  actor(label: string, shape: ClaimShape = {}): Actor {
    const actor = new Actor(label, this.diary.recorder(label), this.name, shape)
    this.actors.push(actor)
    return actor
  }

  /** A flawed design has no tokens; the checkers want to tell its grants apart. */
  serial(): bigint {
    this.tokens += 1n
    return this.tokens
  }

  /** Runs at the end, the last one first. */
  finally(end: () => unknown): void {
    this.endings.unshift(async () => end())
  }

  async end(): Promise<void> {
    for (const end of this.endings) await end().catch(() => undefined)
  }

  async holdfast(url: string, options: HoldfastOptions = {}): Promise<Holdfast> {
    const made = new Holdfast(await openStore(url), { closeStore: true, ...options })
    // A play gives back what it took. What is left is at a server that died, and waiting for that would take a lease.
    this.finally(() => made.close({ release: false }))
    return made
  }

  /** A process of its own, which can die. */
  async process(url: string, options: { readonly ttl: number }): Promise<Taker> {
    const module = { url: compiled('../../open.js', import.meta.url), export: 'openStore', args: url }
    const taker = await spawnTaker(module, options)
    this.finally(() => taker.kill())
    return taker
  }

  /** What a process wrote down itself joins the diary, under the name it has in the play. */
  adopt(label: string, taker: Taker): void {
    this.actor(label)
    this.diary.history.push(...taker.events().map((event) => ({ ...event, process: label })))
  }

  /** Whether somebody gets the lock in time, asking again and again. */
  async mustGet<L extends RecordedLease>(
    actor: Actor,
    ask: () => Promise<L | null>,
    within: number,
  ): Promise<L | null> {
    this.checked.add('liveness')
    const began = this.diary.now()
    while (this.diary.now() - began < within) {
      const lease = await actor.tries(ask)
      if (lease !== null) return lease
      await sleep(25)
    }
    const message = `${actor.label} asked for ${within} ms and never got the lock that nobody uses any more`
    this.violations.push({ check: 'liveness', message, at: this.diary.now(), clients: [actor.label] })
    return null
  }

  /** A number that must not be larger than it needs to be. */
  measured(check: string, count: number, most: number, what: string): void {
    this.checked.add(check)
    this.measures.set(check, `${what}: ${count}`)
    if (count > most) this.violations.push({ check, message: `${what}: ${count}, where ${most} would do` })
  }

  /** Reads, and returns the write that follows from it, for the unfenced and the fenced twin alike. */
  reads(actor: Actor, token: bigint): () => boolean {
    this.checked.add('lost update').add('fenced resource')
    const { fenced, unfenced } = this.resources
    const { label: client } = actor
    const read = { unfenced: unfenced.read(client, token) ?? 0, fenced: fenced.read(client, token) ?? 0 }
    return () => {
      unfenced.write({ client, token, read: read.unfenced, value: read.unfenced + 1 })
      const accepted = fenced.write({ client, token, read: read.fenced, value: read.fenced + 1 })
      const kind = accepted ? 'write' : 'write-refused'
      this.diary.note({ client, name: this.name, kind, token: String(token) })
      return accepted
    }
  }
}
