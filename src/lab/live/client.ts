import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { compiled } from './compiled.ts'
import type { Way } from './way.ts'
import type { FromWorker, ToWorker, WorkOrder } from './worker-protocol.ts'

export interface ClientEvents {
  heard(client: LiveClient, message: FromWorker): void
}

/** One client process, seen from the lab. */
export class LiveClient {
  readonly label: string
  /** Its own way to the store; undefined where it cannot be led through a proxy. */
  readonly way: Way | undefined
  /** Grants that it was given. */
  grants = 0
  /** The name it holds now. */
  holds: string | undefined
  /** The call that is under way. */
  op = 0
  lingering = false
  state: 'starting' | 'working' | 'done' | 'dead' = 'starting'
  private readonly child: ChildProcess
  private readonly gone: Promise<void>

  constructor(order: WorkOrder, way: Way | undefined, events: ClientEvents, execPath: string) {
    this.label = order.label
    this.way = way
    const program = fileURLToPath(compiled('./worker.js', import.meta.url))
    // Nothing of the caller's environment that opens a store: the address comes over the channel.
    const { HOLDFAST_URL: _url, HOLDFAST_TOKEN_FILE: _token, ...env } = process.env
    this.child = fork(program, { serialization: 'advanced', execArgv: [], execPath, env })
    this.child.on('message', (message: FromWorker) => {
      this.note(message)
      events.heard(this, message)
    })
    this.child.on('error', () => undefined)
    this.gone = new Promise((resolve) => {
      this.child.on('exit', () => {
        process.off('exit', this.killNow)
        if (this.state !== 'done') this.state = 'dead'
        this.holds = undefined
        resolve()
      })
    })
    // One that is stopped does not see that the lab is gone.
    process.on('exit', this.killNow)
    this.send(order)
  }

  get alive(): boolean {
    return this.state === 'starting' || this.state === 'working'
  }

  send(message: ToWorker): void {
    if (this.child.connected) this.child.send(message, () => undefined)
  }

  stop(): void {
    this.child.kill('SIGSTOP')
  }

  resume(): void {
    this.child.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    this.killNow()
    await this.gone
  }

  private readonly killNow = (): void => void this.child.kill('SIGKILL')

  private note(message: FromWorker): void {
    switch (message.kind) {
      case 'ready':
        this.state = 'working'
        break
      case 'done':
        this.state = 'done'
        break
      case 'lingering':
        this.lingering = true
        break
      case 'event':
        this.follow(message.event)
        break
      case 'note':
      case 'noise':
      case 'failed':
        break
    }
  }

  private follow({ kind, phase, name, op }: Extract<FromWorker, { kind: 'event' }>['event']): void {
    if (kind === 'acquire' && phase === 'invoke') this.op = op
    if (kind === 'acquire' && phase === 'ok') {
      this.grants += 1
      this.holds = name
    } else if (kind === 'release' && phase === 'invoke') {
      this.holds = undefined
      this.lingering = false
    }
  }
}
