import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { holdsOf } from 'holdfast/testkit'
import type { HistoryEvent, Hold } from 'holdfast/testkit'

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
export const PRESENT = here('../../dist')
/** SQLite is an experiment of some Nodes. */
const QUIET = '--disable-warning=ExperimentalWarning'

interface Member {
  readonly build: string
  readonly child: ChildProcess
  said: string
}

export interface FleetOptions {
  /** The program that a member runs. */
  readonly member?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Processes of one or two builds that use the same locks. Whoever is killed is replaced by another one of the same build. */
export class Fleet {
  private readonly builds: Readonly<Record<string, string>>
  private readonly url: string
  private readonly options: FleetOptions
  private members: Member[] = []
  private readonly events: HistoryEvent[] = []
  private started = 0

  constructor(builds: Readonly<Record<string, string>>, url: string, options: FleetOptions = {}) {
    this.builds = builds
    this.url = url
    this.options = options
  }

  start(build: string): void {
    const args = [this.builds[build] ?? '', PRESENT, this.url, `${build}-${++this.started}`]
    const { member: program = here('member.mjs'), env } = this.options
    const child = spawn(process.execPath, [QUIET, program, ...args], { env: { ...process.env, ...env } })
    const member: Member = { build, child, said: '' }
    createInterface(child.stdout).on('line', (line) => this.hear(line))
    child.stderr.on('data', (chunk: Buffer) => (member.said += chunk.toString()))
    this.members.push(member)
  }

  /** How many grants each build has had. */
  grants(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { process: label, kind, phase } of this.events)
      if (kind === 'acquire' && phase === 'ok') {
        const build = label.split('-')[0] ?? ''
        counts[build] = (counts[build] ?? 0) + 1
      }
    return counts
  }

  /** Milliseconds from the question to the grant. */
  longestWait(): number {
    const asked = new Map<string, bigint>()
    let longest = 0n
    for (const { process: label, op, kind, phase, at } of this.events) {
      if (kind !== 'acquire') continue
      const story = `${label} ${op}`
      if (phase === 'invoke') asked.set(story, at)
      const waited = phase === 'ok' ? at - (asked.get(story) ?? at) : 0n
      if (waited > longest) longest = waited
    }
    return Math.round(Number(longest) / 1e6)
  }

  /** Kills one of them without a word, and starts another one of its build. */
  async replace(): Promise<void> {
    const at = Math.floor(Math.random() * this.members.length)
    const [member] = this.members.splice(at, 1)
    if (member === undefined) return
    const gone = once(member.child, 'close')
    member.child.kill('SIGKILL')
    await gone
    this.start(member.build)
  }

  async run(ms: number, killEvery: number): Promise<void> {
    for (let left = ms; left > 0; left -= killEvery) {
      await sleep(killEvery)
      await this.replace()
    }
  }

  /** Lets them finish. What they believed, and what any of them complained of. */
  async stop(): Promise<{ readonly holds: readonly Hold[]; readonly complaints: readonly string[] }> {
    const complaints = await Promise.all(
      this.members.map(async ({ build, child, said }) => {
        const closed = once(child, 'close')
        child.stdin?.end()
        const [code] = (await closed) as [number | null]
        return code === 0 && said === '' ? [] : [`${build}: ${code} ${said}`]
      }),
    )
    return { holds: holdsOf(this.events), complaints: complaints.flat() }
  }

  /** Ends whoever is left, also if the test has failed. */
  kill(): void {
    for (const { child } of this.members) child.kill('SIGKILL')
  }

  private hear(line: string): void {
    // Of a member that was killed in the middle of a line.
    if (!line.endsWith('}')) return
    const { at, token, validUntil, ...event } = JSON.parse(line) as Record<string, string>
    this.events.push({
      ...(event as unknown as HistoryEvent),
      at: BigInt(at ?? 0),
      ...(token === undefined ? {} : { token: BigInt(token) }),
      ...(validUntil === undefined ? {} : { validUntil: BigInt(validUntil) }),
    })
  }
}

/** How often the mutex went from a member of one build to one of the other. */
export function handOvers(holds: readonly Hold[]): Record<string, number> {
  const counts: Record<string, number> = {}
  const mutex = holds.filter(({ name }) => name === 'fleet:mutex')
  mutex.forEach(({ process: to }, at) => {
    const from = mutex[at - 1]?.process
    if (from === undefined || from === to) return
    const way = `${from.split('-')[0]} to ${to.split('-')[0]}`
    counts[way] = (counts[way] ?? 0) + 1
  })
  return counts
}
