import { subscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'

import { Holdfast } from '../../locks/holdfast.ts'
import { openStore } from '../../open.ts'
import type { LockEvents } from '../../runtime/events.ts'
import type { Lease } from '../../runtime/lease.ts'
import { Recorder } from '../../testkit/history.ts'
import type { Story } from '../../testkit/history.ts'
import { Random } from '../../testkit/random.ts'
import { ResourceClient } from '../resource/client.ts'
import type { FromWorker, Place, ToWorker, WorkOrder } from './worker-protocol.ts'

/** The program of one client: takes a lock, reads, works, checks, writes, gives it back, and again. */

const WORK_MS = 40
const CHECK_EVERY_MS = 15
/** A write that is sent with less than this left could arrive too late on a machine that is busy. */
const MARGIN_MS = 120

const tell = (message: FromWorker): void => void process.send?.(message)

let linger: Place | undefined
let goOn: (() => void) | undefined
let current: Lease | undefined
let finishing = false

class Worker {
  private readonly order: WorkOrder
  private readonly holdfast: Holdfast
  private readonly resource: ResourceClient
  private readonly random: Random
  private readonly recorder: Recorder
  private readonly stop = new AbortController()

  constructor(order: WorkOrder, holdfast: Holdfast) {
    this.order = order
    this.holdfast = holdfast
    this.resource = new ResourceClient(order.resourcePort, order.label)
    this.random = new Random(order.seed)
    this.recorder = new Recorder(order.label, { onEvent: (event) => tell({ kind: 'event', event }) })
  }

  finish(): void {
    this.stop.abort()
  }

  async work(): Promise<void> {
    while (!finishing) {
      await this.section()
      await sleep(this.random.below(this.order.restMs))
    }
    await this.holdfast.close()
    this.resource.close()
  }

  private async section(): Promise<void> {
    const name = this.random.pick([...this.order.names] as [string, ...string[]])
    const story = this.recorder.acquire(name)
    let lease: Lease
    try {
      lease = await this.holdfast.mutex(name).acquire({ wait: 30_000, signal: this.stop.signal })
    } catch {
      story.failed()
      // A store that is down answers at once; it is not asked a thousand times a second.
      await sleep(50)
      return
    }
    story.acquired(lease)
    current = lease
    lease.signal.addEventListener('abort', () => story.lost(), { once: true })
    const checks = setInterval(() => lease.held && story.check(lease), CHECK_EVERY_MS)
    try {
      await this.inside(name, lease)
    } finally {
      clearInterval(checks)
      await giveBack(story, lease)
    }
  }

  private async inside(name: string, lease: Lease): Promise<void> {
    const read = await this.resource.read(name, lease.token)
    await sleep(this.random.below(WORK_MS))
    await standStill('before the check', name)
    // What careful code does. It cannot see what happens between this line and the write.
    if (lease.remaining() < MARGIN_MS) return
    await standStill('after the check', name)
    await this.resource.write(name, lease.token, read)
  }
}

async function standStill(where: Place, name: string): Promise<void> {
  if (linger !== where) return
  linger = undefined
  const told = new Promise<void>((resolve) => void (goOn = resolve))
  tell({ kind: 'lingering', name })
  await told
}

async function giveBack(story: Story, lease: Lease): Promise<void> {
  story.releasing()
  story.released(await lease.release())
}

function block(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

/** Renewals are not part of a history; the picture shows them. */
function watchRenewals(): void {
  const note = (note: Extract<FromWorker, { kind: 'note' }>['note']): void => {
    const remaining = current?.held === true ? { remaining: current.remaining() } : {}
    tell({ kind: 'note', at: process.hrtime.bigint(), note, ...remaining })
  }
  subscribe('holdfast:renewed', (message) => {
    const { name } = message as LockEvents['renewed']
    note({ name, kind: 'renewed' })
  })
  subscribe('holdfast:at-risk', (message) => {
    const { name, remaining } = message as LockEvents['at-risk']
    note({ name, kind: 'at-risk', detail: `${Math.round(remaining)} ms are left` })
  })
}

let worker: Worker | undefined

async function begin(order: WorkOrder): Promise<void> {
  const { url, token, ttl, patience, requestTimeout, label: owner } = order
  const store = await openStore(url, token === undefined ? {} : { token })
  worker = new Worker(order, new Holdfast(store, { closeStore: true, ttl, patience, requestTimeout, owner }))
  tell({ kind: 'ready' })
  await worker.work()
  tell({ kind: 'done' })
}

process.on('disconnect', () => process.exit())
// Ctrl-C reaches everybody at a terminal; the lab decides when this ends.
for (const signal of ['SIGINT', 'SIGQUIT', 'SIGHUP']) process.on(signal, () => undefined)
process.on('unhandledRejection', (reason) => tell({ kind: 'noise', message: `unhandled: ${String(reason)}` }))
process.on('warning', ({ name, message }) => {
  // That Node calls its SQLite experimental is no fault of a lock.
  if (name !== 'ExperimentalWarning') tell({ kind: 'noise', message: `warning: ${message}` })
})
process.on('message', (message: ToWorker) => {
  switch (message.do) {
    case 'begin':
      watchRenewals()
      begin(message).catch((error: unknown) => {
        tell({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
      })
      break
    case 'linger':
      linger = message.where
      break
    case 'go':
      linger = undefined
      goOn?.()
      break
    case 'block':
      block(message.ms)
      break
    case 'finish':
      finishing = true
      goOn?.()
      worker?.finish()
      break
  }
})
