import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, vi } from 'vitest'

/** The command as people get it: built, in a process of its own. `npm test` builds before it runs; another build may be named. */
export const program: string =
  process.env['HOLDFAST_PROGRAM'] ?? fileURLToPath(new URL('../../dist/cli/start.cjs', import.meta.url))

export interface RunOptions {
  readonly url?: string | undefined
  readonly env?: NodeJS.ProcessEnv
  readonly input?: string
}

/** A command that runs, and what it has said so far. */
export class Running {
  readonly process: ChildProcess
  stdout = ''
  stderr = ''
  private readonly ended: Promise<[number | null, NodeJS.Signals | null]>

  constructor(process: ChildProcess) {
    this.process = process
    process.stdout?.setEncoding('utf8').on('data', (text) => (this.stdout += String(text)))
    process.stderr?.setEncoding('utf8').on('data', (text) => (this.stderr += String(text)))
    this.ended = once(process, 'close') as Promise<[number | null, NodeJS.Signals | null]>
    started.push(this)
  }

  get pid(): number {
    if (this.process.pid === undefined) throw new Error('it did not start')
    return this.process.pid
  }

  /** The exit code, or the signal that ended it. */
  async end(): Promise<number | NodeJS.Signals | null> {
    const [code, signal] = await this.ended
    return signal ?? code
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal)
  }

  /** Waits until it has said this, on stdout or stderr. */
  async says(what: string | RegExp): Promise<string> {
    const said = (): string => this.stdout + this.stderr
    const has = (): boolean => (typeof what === 'string' ? said().includes(what) : what.test(said()))
    const over = (): boolean => has() || this.process.exitCode !== null || this.process.signalCode !== null
    await vi.waitUntil(over, { timeout: 15_000, interval: 10 }).catch(() => {})
    // What it said last may still be in the pipe when it has ended.
    await vi.waitUntil(has, { timeout: 500, interval: 10 }).catch(() => {
      throw new Error(`waited in vain for ${what}; it said:\n${said()}`)
    })
    return said()
  }
}

const started: Running[] = []

/** Ends what a test left behind. For `afterEach`. */
export async function endAll(): Promise<void> {
  for (const { process, end } of started.splice(0).map((one) => ({ process: one.process, end: one.end() }))) {
    process.kill('SIGCONT')
    process.kill('SIGKILL')
    await end
  }
}

export function holdfast(args: readonly string[], { url, env = {}, input }: RunOptions = {}): Running {
  const { HOLDFAST_URL: _, HOLDFAST_TOKEN_FILE: __, ...rest } = process.env
  const environment = { ...rest, ...(url === undefined ? {} : { HOLDFAST_URL: url }), ...env }
  const child = spawn(process.execPath, [program, ...args], { env: environment, stdio: 'pipe' })
  child.stdin.on('error', () => {})
  if (input !== undefined) child.stdin.end(input)
  return new Running(child)
}

export interface Ended {
  readonly code: number | NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command to its end. */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const running = holdfast(args, { input: '', ...options })
  const code = await running.end()
  return { code, stdout: running.stdout, stderr: running.stderr }
}

/** A lock server in a process of its own, which can be stopped and killed without the tests' process noticing. */
export async function lockServer(...more: readonly string[]): Promise<Running & { readonly url: string }> {
  const server = holdfast(['serve', '--listen', '127.0.0.1:0', '--state', 'none', '--json', ...more])
  // It lives longer than one test.
  started.splice(started.indexOf(server), 1)
  await server.says('\n')
  return Object.assign(server, { url: (JSON.parse(server.stdout) as { url: string }).url })
}

/** Whether a process runs. One that has ended but that nobody has asked about yet does not. */
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

export async function dies(pid: number, within = 5000): Promise<void> {
  await vi.waitUntil(() => !alive(pid), { timeout: within, interval: 5 })
}

/** Whether a lock can be had at once. */
export async function isFree(name: string, url: string): Promise<boolean> {
  const { code } = await run(['run', name, '--wait', '0', '--', 'true'], { url })
  return code === 0
}

/** A shell script as arguments of `run`. */
export const sh = (script: string): readonly string[] => ['--', 'sh', '-c', script]

const folders: string[] = []
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A folder that is gone when the tests of the file are over. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  folders.push(folder)
  return folder
}
