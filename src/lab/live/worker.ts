import { subscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'

import type { LockEvents } from '../../runtime/events.ts'
import type { Lease } from '../../runtime/lease.ts'
import { Recorder } from '../../testkit/history.ts'
import { Random } from '../../testkit/random.ts'
import { ResourceClient } from '../resource/client.ts'
import { openLibrary } from './library.ts'
import type { LabClient } from './library.ts'
import type { Wishes } from './sections.ts'
import { Sections } from './sections.ts'
import type { FromWorker, Place, ToWorker, WorkOrder } from './worker-protocol.ts'

/** The program of one client: section after section, until it is told to end. */

const tell = (message: FromWorker): void => void process.send?.(message)

let linger: Place | undefined
/** Where it is to be among others. */
let meeting: string | undefined
let goOn: (() => void) | undefined
let current: Lease | undefined
let finishing = false
const stop = new AbortController()

const wishes: Wishes = {
  long: undefined,
  meet: undefined,
  get lingers() {
    return linger !== undefined
  },
  async stand(where, name) {
    // One that was given up may still be waited for when the next one is called.
    if (linger !== where || (where === 'among others' && name !== meeting)) return
    linger = undefined
    const told = new Promise<void>((resolve) => void (goOn = resolve))
    tell({ kind: 'lingering', name })
    await told
  },
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

const TICK_MS = 40
const STALL_MS = 100

/** Whether this process stands still for want of a processor. One that blocks its own loop uses one, and is not excused. */
function watchStalls(): void {
  let last = process.hrtime.bigint()
  let used = process.cpuUsage()
  setInterval(() => {
    const now = process.hrtime.bigint()
    const { user, system } = process.cpuUsage(used)
    const late = Number(now - last) / 1e6 - TICK_MS
    if (late > STALL_MS && (user + system) / 1000 < late / 2) tell({ kind: 'stall', from: last, to: now })
    last = now
    used = process.cpuUsage()
  }, TICK_MS)
}

async function begin(order: WorkOrder): Promise<() => Promise<void>> {
  const library = await openLibrary(order)
  const resource = new ResourceClient(order.resourcePort, order.label)
  const random = new Random(order.seed)
  const recorder = new Recorder(order.label, { onEvent: (event) => tell({ kind: 'event', event }) })
  const holding = (lease: Lease | undefined): void => void (current = lease)
  const tools = { order, library, resource, random, recorder, wishes, stop: stop.signal, tell, holding }
  const sections = new Sections(tools)
  const { companion } = library
  library.stalls?.((ms) => {
    const to = process.hrtime.bigint()
    tell({ kind: 'stall', from: to - BigInt(Math.round(ms * 1e6)), to })
  })
  tell({ kind: 'ready', ...(companion !== undefined && { companion }) })
  return async () => {
    while (!finishing) {
      await sections.next()
      await sleep(random.below(order.restMs))
    }
    await end(library, resource)
  }
}

async function end(library: LabClient, resource: ResourceClient): Promise<void> {
  const error = await library.close().then(
    () => undefined,
    (reason: unknown) => String(reason),
  )
  resource.close()
  tell({ kind: 'done', ...(error !== undefined && { error }) })
}

function thrown(error: unknown): never {
  throw error
}

process.on('disconnect', () => process.exit())
// Ctrl-C reaches everybody at a terminal, and what ends a job all that belong to it; the lab decides when this ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGHUP']) process.on(signal, () => undefined)
process.on('uncaughtExceptionMonitor', (error) =>
  tell({ kind: 'noise', message: `uncaught: ${String(error)}` }),
)
process.on('unhandledRejection', (reason) => tell({ kind: 'noise', message: `unhandled: ${String(reason)}` }))
process.on('warning', ({ name, message }) => {
  // That Node calls its SQLite experimental is no fault of a lock.
  if (name !== 'ExperimentalWarning') tell({ kind: 'noise', message: `warning: ${message}` })
})
process.on('message', (message: ToWorker) => {
  switch (message.do) {
    case 'begin':
      watchRenewals()
      watchStalls()
      begin(message).then(
        // What goes wrong from then on ends this process, as it would end a user's.
        (work) => void work().catch((error: unknown) => setImmediate(() => thrown(error))),
        (error: unknown) => tell({ kind: 'failed', message: String(error) }),
      )
      break
    case 'linger':
      linger = message.where
      break
    case 'long':
      wishes.long = message
      break
    case 'meet':
      wishes.meet = message
      meeting = message.at.name
      linger = 'among others'
      break
    case 'go':
      linger = undefined
      wishes.meet = undefined
      goOn?.()
      break
    case 'block':
      block(message.ms)
      break
    case 'finish':
      finishing = true
      goOn?.()
      stop.abort()
      break
  }
})
