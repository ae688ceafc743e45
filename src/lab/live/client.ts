import { fork, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { compiled } from './compiled.ts'
import type { ClientRecord } from './evidence.ts'
import type { Way } from './way.ts'
import type { FromWorker, ToWorker, WorkOrder } from './worker-protocol.ts'

export interface ClientEvents {
  heard(client: LiveClient, message: FromWorker): void
  /** Milliseconds since the run began. */
  now(): number
}

/** A client that is stopped does not see that the lab is gone: all that are there are killed with it. */
const THERE = new Set<() => void>()
process.on('exit', () => {
  for (const kill of THERE) kill()
})

/**
 * Lets a process go on when the lab has ended in whatever way: nobody who is killed says goodbye, and what is stopped then would stay so for
 * ever. The lab holds one end of a pipe. Returns what ends this.
 */
function goesOnWithout(pids: readonly number[]): () => void {
  const script = 'read -r _; kill -CONT "$@" 2>/dev/null'
  const stdio = ['pipe', 'ignore', 'ignore'] as const
  const watcher = spawn('/bin/sh', ['-c', script, 'sh', ...pids.map(String)], {
    detached: true,
    stdio: [...stdio],
  })
  watcher.on('error', () => undefined)
  watcher.stdin.on('error', () => undefined)
  watcher.unref()
  // At once: a late word of it would let go whoever was stopped again by then.
  return () => void watcher.kill('SIGKILL')
}

/** One client process, seen from the lab. */
export class LiveClient {
  readonly label: string
  /** Its own way to the store; undefined where it cannot be led through a proxy. */
  readonly way: Way | undefined
  /** Grants that it was given, by name. */
  readonly granted: Map<string, number> = new Map()
  /** The name that it asks for in the call that is under way. */
  waitsFor: string | undefined
  /** When that call was heard of. */
  waitsSince = 0
  /** When it last gave up waiting for a name: something may stand for that call at the store for a while. */
  readonly gaveUp: Map<string, number> = new Map()
  /** The call that is under way. */
  op = 0
  /** The name that it holds where it stands still. */
  lingering: string | undefined
  /** Whether it has asked for every lock in every way. */
  wentThrough = false
  /** Sections beyond the ttl that it was asked for, and has done. */
  longSections = 0
  state: 'starting' | 'working' | 'done' | 'dead' = 'starting'
  /** The process that does its work, where it has another one for that. */
  private companion: number | undefined
  private unwatch: (() => void) | undefined
  private readonly child: ChildProcess
  private readonly gone: Promise<void>
  private readonly events: ClientEvents
  private readonly startedAt: number
  private exit: ClientRecord['exit']
  private closing: ClientRecord['closing']
  private planned = false

  constructor(order: WorkOrder, way: Way | undefined, events: ClientEvents, execPath: string) {
    this.label = order.label
    this.way = way
    this.events = events
    this.startedAt = events.now()
    const program = fileURLToPath(compiled('./worker.js', import.meta.url))
    // Nothing of the caller's environment that opens a store: the address comes over the channel.
    const { HOLDFAST_URL: _url, HOLDFAST_TOKEN_FILE: _token, ...env } = process.env
    // What a client says as it dies is told in the report, and not in between the lab's own lines.
    const stdio = ['ignore', 'ignore', 'ignore', 'ipc'] as const
    // A session of its own: what ends the lab's whole job must not end a client that is only starting, and cannot say no yet.
    const own = { detached: true, execArgv: [], execPath, env }
    this.child = fork(program, { ...own, serialization: 'advanced', stdio: [...stdio] })
    this.child.on('message', (message: FromWorker) => {
      this.note(message)
      events.heard(this, message)
    })
    this.child.on('error', () => undefined)
    this.gone = new Promise((resolve) => {
      this.child.on('exit', (code, signal) => {
        THERE.delete(this.killNow)
        this.unwatch?.()
        const how = signal === null ? `exit code ${code}` : signal
        this.exit = { at: events.now(), how, planned: this.planned }
        if (this.state !== 'done') this.state = 'dead'
        this.waitsFor = undefined
        resolve()
        // Whoever waits for this client has to look again.
        events.heard(this, { kind: 'gone' })
      })
    })
    THERE.add(this.killNow)
    this.send(order)
  }

  get alive(): boolean {
    return this.state === 'starting' || this.state === 'working'
  }

  get grants(): number {
    return [...this.granted.values()].reduce((sum, count) => sum + count, 0)
  }

  get record(): ClientRecord {
    const { label, startedAt, exit, closing } = this
    return { label, startedAt, ...(exit && { exit }), ...(closing && { closing }) }
  }

  send(message: ToWorker): void {
    if (message.do === 'finish') this.closing ??= { from: this.events.now() }
    if (this.child.connected) this.child.send(message, () => undefined)
  }

  stop(): void {
    const pids = [this.companion, this.child.pid].filter((pid) => pid !== undefined)
    this.unwatch ??= goesOnWithout(pids)
    this.signal('SIGSTOP')
  }

  resume(): void {
    this.signal('SIGCONT')
    this.unwatch?.()
    this.unwatch = undefined
  }

  async kill(): Promise<void> {
    this.killNow()
    await this.gone
  }

  private readonly killNow = (): void => {
    this.planned = true
    this.signal('SIGKILL')
  }

  /** Its companion first: it is the one that has the lock. */
  private signal(signal: NodeJS.Signals): void {
    if (this.companion !== undefined && this.exit === undefined) {
      try {
        process.kill(this.companion, signal)
      } catch {
        // It has ended.
      }
    }
    this.child.kill(signal)
  }

  private note(message: FromWorker): void {
    switch (message.kind) {
      case 'ready':
        this.state = 'working'
        this.companion = message.companion
        break
      case 'done': {
        this.state = 'done'
        const { from = this.events.now() } = this.closing ?? {}
        const { error } = message
        this.closing = { from, to: this.events.now(), ...(error !== undefined && { error }) }
        break
      }
      case 'lingering':
        this.lingering = message.name
        break
      case 'asked for everything':
        this.wentThrough = true
        break
      case 'long':
        this.longSections += 1
        break
      case 'event':
        this.follow(message.event)
        break
      case 'note':
      case 'stall':
      case 'noise':
      case 'error':
      case 'refused':
      case 'failed':
      case 'gone':
        break
    }
  }

  private follow({ kind, phase, name, op }: Extract<FromWorker, { kind: 'event' }>['event']): void {
    if (kind === 'acquire') {
      this.op = op
      this.waitsFor = phase === 'invoke' ? name : undefined
      if (phase === 'invoke') this.waitsSince = performance.now()
      if (phase === 'fail') this.gaveUp.set(name, performance.now())
      if (phase === 'ok') this.granted.set(name, (this.granted.get(name) ?? 0) + 1)
    } else if (kind === 'release' && phase === 'invoke') this.lingering = undefined
  }
}
