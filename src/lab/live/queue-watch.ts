import { setTimeout as sleep } from 'node:timers/promises'

import type { Scene } from './scene.ts'

const EVERY_MS = 40

/**
 * Looks again and again who stands in line at the store, and writes that down: a client cannot tell from outside when the
 * store put it there. Only what was the same call before and after the look is certain.
 */
export class QueueWatch {
  private readonly scene: Scene
  private readonly seen = new Set<string>()
  private looking = true
  private readonly ended: Promise<void>

  constructor(scene: Scene) {
    this.scene = scene
    this.ended = this.watch()
  }

  async stop(): Promise<void> {
    this.looking = false
    await this.ended
  }

  private async watch(): Promise<void> {
    while (this.looking) {
      for (const name of this.scene.stage.names) await this.look(name)
      await sleep(EVERY_MS)
    }
  }

  private async look(name: string): Promise<void> {
    const { clients, diary } = this.scene
    const before = new Map(clients.map(({ label, op }) => [label, op]))
    const info = await this.scene.inspect(name)
    const at = process.hrtime.bigint()
    for (const { owner } of info?.waiters ?? []) {
      const op = clients.find(({ label }) => label === owner)?.op
      const key = `${owner}#${op}`
      if (op === undefined || op !== before.get(owner) || this.seen.has(key)) continue
      this.seen.add(key)
      diary.history.push({ process: owner, op, kind: 'acquire', phase: 'queued', at, name })
    }
  }
}
