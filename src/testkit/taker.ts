import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import type { HistoryEvent } from './history.ts'
import type {
  StoreModule,
  TakeOptions,
  TakerCommand,
  TakerMessage,
  TakerOptions,
  TakerState,
} from './taker-protocol.ts'

export type { StoreModule, TakeOptions, TakerOptions, TakerState } from './taker-protocol.ts'

/** The child's error, with the code that it had there. */
export class TakerError extends Error {
  readonly code: string | undefined

  constructor(message: string, code: string | undefined) {
    super(message)
    this.code = code
  }
}

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

const STOPPED = /\) [Tt] /

/** A process that takes a lock, and dies, stops or blocks on command. */
export class Taker {
  /** Its process id. */
  readonly pid: number
  private readonly child: ChildProcess
  private readonly history: HistoryEvent[] = []
  private readonly waiting = new Map<number, Waiting>()
  private readonly gone: Promise<void>
  private requests = 0

  constructor(child: ChildProcess) {
    this.child = child
    this.pid = child.pid ?? 0
    child.on('message', (message: TakerMessage) => this.heard(message))
    child.on('error', (error) => this.failAll(error))
    // Whoever asked it for something need not listen any more when it dies: that may have been the point.
    this.gone = new Promise((resolve) => {
      child.on('exit', (code, signal) => {
        process.off('exit', this.killNow)
        this.failAll(new Error(`the taker ended (${signal ?? code})`))
        resolve()
      })
    })
    // A stopped child does not see that its parent is gone.
    process.on('exit', this.killNow)
  }

  open(module: StoreModule, options: TakerOptions): Promise<void> {
    return this.ask({ do: 'open', module, options, label: `taker-${this.pid}` })
  }

  /** Takes a mutex and keeps it. Resolves with the token. */
  acquire(name: string, options: TakeOptions = {}): Promise<bigint> {
    return this.ask({ do: 'acquire', name, options })
  }

  release(): Promise<'released' | 'expired' | 'unknown'> {
    return this.ask({ do: 'release' })
  }

  state(): Promise<TakerState> {
    return this.ask({ do: 'state' })
  }

  /** Keeps its event loop busy. Resolves afterwards, with what its first code after the block knew. */
  block(ms: number): Promise<TakerState> {
    return this.ask({ do: 'block', ms })
  }

  /** SIGSTOP. */
  async stop(): Promise<void> {
    this.child.kill('SIGSTOP')
    const status = `/proc/${this.pid}/stat`
    while (existsSync(status) && !STOPPED.test(readFileSync(status, 'utf8'))) {
      await new Promise((resolve) => void setImmediate(resolve))
    }
  }

  /** SIGCONT. */
  resume(): void {
    this.child.kill('SIGCONT')
  }

  /** SIGKILL. Resolves when it is dead. */
  kill(): Promise<void> {
    this.killNow()
    return this.gone
  }

  /** What it did so far, in its own words. */
  events(): readonly HistoryEvent[] {
    return this.history
  }

  /** Lets it give back what it has, and ends it. */
  async close(): Promise<void> {
    if (this.child.connected) {
      this.resume()
      await this.ask({ do: 'close' }).catch(() => undefined)
    }
    await this.kill()
  }

  private readonly killNow = (): void => void this.child.kill('SIGKILL')

  private ask<T>(command: TakerCommand): Promise<T> {
    this.requests += 1
    const id = this.requests
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as Waiting['resolve'], reject })
      if (!this.child.connected) return this.failAll(new Error('the taker has ended'))
      this.child.send({ id, command }, (error) => error && this.failAll(error))
    })
  }

  private heard(message: TakerMessage): void {
    if ('event' in message) {
      this.history.push(message.event)
      return
    }
    const waiting = this.waiting.get(message.id)
    this.waiting.delete(message.id)
    if ('error' in message) waiting?.reject(new TakerError(message.error.message, message.error.code))
    else waiting?.resolve(message.result)
  }

  private failAll(error: Error): void {
    const waiting = [...this.waiting.values()]
    this.waiting.clear()
    for (const { reject } of waiting) reject(error)
  }
}

/** Starts a taker on a store. Close it when done. */
export async function spawnTaker(module: StoreModule, options: TakerOptions = {}): Promise<Taker> {
  const taker = new Taker(fork(childProgram(), { serialization: 'advanced', execArgv: [] }))
  try {
    await taker.open(module, options)
    return taker
  } catch (error) {
    await taker.kill()
    throw error
  }
}

/** Run from sources, the child is still the compiled one. */
function childProgram(): string {
  const beside = new URL('./taker-child.js', import.meta.url)
  const compiled = fileURLToPath(beside.href.replace('/src/testkit/', '/dist/testkit/'))
  if (!existsSync(compiled)) {
    throw new Error('The taker is a compiled program and there is none yet: run `npm run build` first.')
  }
  return compiled
}
