import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { compiled } from '../live/compiled.ts'
import type { FromResource, RegisterLog } from './protocol.ts'

/** The resource, in its own process. */
export class Resource {
  readonly port: number
  private readonly child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.child = child
    this.port = port
  }

  static async start(): Promise<Resource> {
    const program = fileURLToPath(compiled('./server.js', import.meta.url))
    const child = fork(program, { serialization: 'advanced', execArgv: [] })
    const [message] = (await once(child, 'message')) as [FromResource]
    if (message.kind !== 'listening') throw new Error('the resource did not begin as it should')
    return new Resource(child, message.port)
  }

  /** What it decided, in order. */
  async logs(): Promise<readonly RegisterLog[]> {
    const said = once(this.child, 'message') as Promise<[FromResource]>
    this.child.send('logs')
    const [message] = await said
    return message.kind === 'logs' ? message.logs : []
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const gone = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await gone
  }
}
