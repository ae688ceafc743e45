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
    // A session of its own: the lab alone ends it, also when its whole job is told to end.
    const child = fork(program, { detached: true, serialization: 'advanced', execArgv: [] })
    const message = await said(child)
    if (message.kind !== 'listening') throw new Error('the resource did not begin as it should')
    return new Resource(child, message.port)
  }

  /** What it decided, in order. */
  async logs(): Promise<readonly RegisterLog[]> {
    const answer = said(this.child)
    this.child.send('logs', () => undefined)
    const message = await answer
    return message.kind === 'logs' ? message.logs : []
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const gone = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await gone
  }
}

/** What it says next. Rejects when it ends instead: nobody must wait for it for ever. */
async function said(child: ChildProcess): Promise<FromResource> {
  const ended = new AbortController()
  const end = (): void => ended.abort(new Error('the resource ended by itself'))
  if (child.exitCode !== null || child.signalCode !== null) end()
  child.once('exit', end)
  try {
    const [message] = (await once(child, 'message', { signal: ended.signal })) as [FromResource]
    return message
  } finally {
    child.off('exit', end)
  }
}
