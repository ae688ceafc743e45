import { setTimeout as sleep } from 'node:timers/promises'

import { ALL } from '../../core/contract.ts'
import { CLEANED_UP_MS } from './checks/presence.ts'
import type { Look, Stall } from './evidence.ts'
import type { LiveClient } from './client.ts'
import type { Scene } from './scene.ts'
import { since } from './timeline.ts'

const EVERY_MS = 40
/** A timer of this process that is later than this says that the machine is busy. */
const STALL_MS = 100
const TICK_MS = 50

/**
 * Looks again and again who holds and who stands in line at the store, and how busy the machine is. A client cannot tell from
 * outside when the store put it in line; only what was the same call before and after the look is certain.
 */
export class Onlooker {
  readonly looks: Look[] = []
  readonly stalls: Stall[] = []
  private readonly scene: Scene
  private readonly seen = new Set<string>()
  private looking = true
  private readonly ended: Promise<void>
  private readonly ticks: NodeJS.Timeout

  constructor(scene: Scene) {
    this.scene = scene
    let due = performance.now() + TICK_MS
    this.ticks = setInterval(() => {
      const late = performance.now() - due
      const now = scene.diary.now()
      if (late > STALL_MS) this.stalls.push({ from: now - late, to: now, of: 'the lab' })
      due = performance.now() + TICK_MS
    }, TICK_MS)
    this.ended = this.watch()
  }

  /** Whether the store showed it in line for the call that is under way. */
  sawInLine({ label, op }: Pick<LiveClient, 'label' | 'op'>): boolean {
    return this.seen.has(`${label}#${op}`)
  }

  /** A client says that it was given no processor. */
  stalled(of: string, from: bigint, to: bigint): void {
    const { began } = this.scene.diary
    this.stalls.push({ from: since(began, from), to: since(began, to), of })
  }

  async stop(): Promise<void> {
    this.looking = false
    clearInterval(this.ticks)
    await this.ended
  }

  private async watch(): Promise<void> {
    while (this.looking) {
      await this.lookOnce()
      await sleep(EVERY_MS)
    }
  }

  async lookOnce(): Promise<void> {
    for (const { name } of this.scene.names) await this.look(name)
  }

  private async look(name: string): Promise<void> {
    const { clients, diary } = this.scene
    const cleanedUp = performance.now() - CLEANED_UP_MS
    const before = new Map(clients.map(({ label, op }) => [label, op]))
    const from = process.hrtime.bigint()
    const info = await this.scene.inspect(name)
    const to = process.hrtime.bigint()
    if (info === undefined) return
    const owners = (claims: readonly { readonly owner: string }[]): string[] =>
      claims.map(({ owner }) => owner)
    const writers = owners(info.holders.filter(({ weight }) => weight === ALL))
    this.looks.push({
      name,
      from,
      to,
      holders: owners(info.holders),
      waiters: owners(info.waiters),
      ...(writers.length > 0 && { writers }),
    })
    for (const { owner } of info.waiters) {
      const client = clients.find(({ label }) => label === owner)
      const key = `${owner}#${client?.op}`
      if (client?.waitsFor !== name || client.op !== before.get(owner) || this.seen.has(key)) continue
      // It may be what is left of the call before.
      if ((client.gaveUp.get(name) ?? -Infinity) > cleanedUp) continue
      this.seen.add(key)
      diary.history.push({ process: owner, op: client.op, kind: 'acquire', phase: 'queued', at: to, name })
    }
  }
}
