import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import type { RunningServer } from '../../../src/server/index.ts'
import { afterwards } from '../helpers.ts'

const PROGRAM = fileURLToPath(new URL('victim.mjs', import.meta.url))

export interface Victim {
  /** As far as the helpers look at a server. */
  readonly server: RunningServer
  readonly alive: () => boolean
  /** Bytes of memory that the process has now. */
  readonly memory: () => Promise<number>
  /** Ends it as planned; the code that the process ended with, or the signal. */
  readonly stop: () => Promise<unknown>
}

/** A server in a process of its own that has `heap` megabytes to live on. */
export async function victim(options: Record<string, unknown> = {}, heap = 96): Promise<Victim> {
  const child = fork(PROGRAM, [JSON.stringify(options)], {
    execArgv: [`--max-old-space-size=${heap}`],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  afterwards(() => child.kill('SIGKILL'))
  const [facts] = (await once(child, 'message')) as [{ address: string; url: string }]
  return {
    server: facts as RunningServer,
    alive: () => child.exitCode === null && child.signalCode === null,
    memory: async () => {
      child.send('memory')
      const [{ rss }] = (await once(child, 'message')) as [{ rss: number }]
      return rss
    },
    stop: async () => {
      child.send('stop')
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
      return code ?? signal
    },
  }
}
