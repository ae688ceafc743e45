import type { Command } from './spec.ts'

interface Entry {
  readonly summary: string
  /** Loaded when it is asked for: `holdfast run` must not wait for the server's code. */
  readonly load: () => Promise<Command>
}

const entry = (summary: string, load: () => Promise<{ readonly default: Command }>): Entry => ({
  summary,
  load: async () => (await load()).default,
})

/** Every command, in the order in which help lists them. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  run: entry('run a command while holding a lock', () => import('./commands/run.ts')),
  acquire: entry('take a lock for a script and keep it', () => import('./commands/acquire.ts')),
  release: entry(
    'give back a lock that acquire took, or take one away by force',
    () => import('./commands/release.ts'),
  ),
  ls: entry('list the locks that are held or waited for', () => import('./commands/ls.ts')),
  inspect: entry('show who holds a lock and who waits for it', () => import('./commands/inspect.ts')),
  serve: entry('start a lock server', () => import('./commands/serve.ts')),
  token: entry('make a token for a lock server', () => import('./commands/token.ts')),
  doctor: entry('check a store and say what it can promise', () => import('./commands/doctor.ts')),
  conformance: entry('run the conformance cases against a store', () => import('./commands/conformance.ts')),
  lab: entry('hurt lock clients on a store and show what holds', () => import('./commands/lab.ts')),
  schema: entry('print the SQL that a database store needs', () => import('./commands/schema.ts')),
  tidy: entry('forget names that nobody uses, in a database', () => import('./commands/tidy.ts')),
  demo: entry(
    'sell train tickets from several processes, without and with a lock',
    () => import('./commands/demo.ts'),
  ),
  completion: entry('print the completion script for a shell', () => import('./commands/completion.ts')),
}
