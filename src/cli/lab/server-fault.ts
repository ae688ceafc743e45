import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Nemesis } from '../../lab/live/nemesis.ts'
import { CommandError, EXIT } from '../exit.ts'

/**
 * How to hurt a server that the lab did not start: by commands of the user's, who alone knows how it runs. What holds is
 * read from the table's row for a store that restarts: whatever was done to it, it comes back.
 */
export function serverFault(hurt: string, heal: string | undefined): Nemesis {
  return {
    kind: 'server',
    what: 'the server is hurt by a command',
    row: 'storeRestart',
    missing: () => undefined,
    async strike({ diary, stage }) {
      const end = diary.faultBegins('server', 'the server', { detail: hurt })
      try {
        await shell(hurt)
        await sleep(stage.ttl / 2)
      } finally {
        if (heal !== undefined) await shell(heal)
        end()
      }
      await sleep(stage.ttl)
    },
  }
}

async function shell(command: string): Promise<void> {
  const child = spawn('/bin/sh', ['-c', command], { stdio: ['ignore', 'ignore', 'inherit'] })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', resolve)
  })
  if (code !== 0)
    throw new CommandError(`The command ended with ${code ?? 'a signal'}: ${command}`, EXIT.failed)
}
