import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Nemesis } from '../../lab/live/index.ts'
import { Missed, signsSince } from '../../lab/live/index.ts'
import { CommandError, EXIT } from '../exit.ts'

/** A command that hurts a server, or heals it, ends. One that does not would keep the lab for ever. */
const COMMAND_MS = 120_000
/** Beyond the longest lease: what was hurt has worn off, and what is seen then is seen without it. */
const CALM_MS = 1500

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
    async strike(scene) {
      const { diary, stage, expiry } = scene
      const seen = signsSince(scene)
      const end = diary.faultBegins('server', 'the server', { detail: hurt })
      try {
        await shell(hurt)
        await sleep(stage.ttl / 2)
      } finally {
        if (heal !== undefined) await shell(heal)
        end()
      }
      await sleep(expiry + CALM_MS)
      if (!seen())
        throw new Missed(
          `"${hurt}" did nothing that was seen: all questions were answered, and no lease was lost`,
        )
    },
  }
}

async function shell(command: string): Promise<void> {
  const child = spawn('/bin/sh', ['-c', command], { stdio: ['ignore', 'ignore', 'inherit'], detached: true })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', resolve)
  })
  const timer = setTimeout(() => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL'), COMMAND_MS)
  const code = await ended.finally(() => clearTimeout(timer))
  if (code !== 0)
    throw new CommandError(`The command ended with ${code ?? 'a signal'}: ${command}`, EXIT.failed)
}
