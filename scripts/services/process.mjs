// One server process: started in a folder of its own, waited for, hurt on demand, and gone afterwards.
import { execFile, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { find } from './find.mjs'
import { guard } from './guard.mjs'
import { freePort, isFree } from './ports.mjs'

const run = promisify(execFile)

const START_TIMEOUT = 30_000
const STOP_TIMEOUT = 10_000
const MOST_LOOKS = 5000
const LOG = 'server.log'
const FATAL = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGABRT', 'SIGHUP', 'SIGSEGV'])

/**
 * @typedef {object} Plan how to run one kind of server
 * @property {import('./find.mjs').Program} program
 * @property {(at: { port: number, dir: string }) => string[]} args
 * @property {(at: { port: number, dir: string }) => Promise<boolean>} ready whether it answers
 * @property {(at: { port: number, dir: string }) => void | Promise<void>} [prepare] fills an empty folder
 * @property {string} scheme of its URL
 * @property {number} [alsoPlus] see freePort
 *
 * @typedef {object} Wish what a caller may choose
 * @property {string} [dir] kept at stop; otherwise a temporary folder is made and removed
 * @property {number} [port]
 * @property {Record<string, string>} [env] added to the server's environment
 */

/** Starts a server. A port that somebody else took between choosing and binding costs another try, not a failure. */
export async function launch(/** @type {Plan} */ plan, /** @type {Wish} */ { dir, port, env } = {}) {
  for (let tries = port === undefined ? 4 : 0; ; tries--) {
    const server = new ServerProcess(plan, { dir, env, port: port ?? (await freePort(plan)) })
    try {
      await server.start()
      return server
    } catch (error) {
      await server.stop()
      if (tries === 0 || !/address already in use/i.test(error.message)) throw error
    }
  }
}

class ServerProcess {
  host = '127.0.0.1'
  #plan
  #env
  #child
  #container
  #exited = Promise.resolve()
  #ownsDir
  #forgetDir = () => {}

  constructor(plan, { dir, port, env }) {
    this.#plan = plan
    this.#env = env
    this.port = port
    this.#ownsDir = dir === undefined
    this.dir = dir ?? mkdtempSync(join(tmpdir(), `holdfast-${plan.program.name}-`))
    if (this.#ownsDir) this.#forgetDir = guard({ dir: this.dir })
  }

  get url() {
    return `${this.#plan.scheme}://${this.host}:${this.port}`
  }

  /** Of the process that runs now; `undefined` while none does. */
  get pid() {
    return this.#child?.pid
  }

  async start() {
    if (readdirSync(this.dir).every((name) => name === LOG)) await this.#plan.prepare?.(this)
    // Asked here, because otherwise somebody else's server at this port would be taken for ours.
    if (!(await isFree(this.port))) throw new Error(`port ${this.port}: address already in use`)
    const { command, prefix, container } = await find(this.#plan.program, { dir: this.dir, env: this.#env })
    this.#container = container
    const log = openSync(join(this.dir, LOG), 'a')
    const child = spawn(command, [...prefix, ...this.#plan.args(this)], {
      cwd: this.dir,
      env: { ...process.env, ...this.#env },
      // A session of its own: Ctrl-C at a terminal is for whoever started it, who may need it until its end. See guard.mjs.
      detached: true,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    // A server that nobody stopped must not keep its user's process from ending.
    child.unref()
    this.#child = child
    const forget = guard({ pid: child.pid, container })
    this.#exited = new Promise((resolve) => {
      const gone = () => {
        forget()
        if (this.#child === child) this.#child = undefined
        resolve()
      }
      child.once('exit', gone)
      child.once('error', gone)
    })
    await this.#untilReady()
  }

  async #untilReady() {
    const deadline = Date.now() + START_TIMEOUT
    while (!(await this.#plan.ready(this))) {
      if (this.#child === undefined) throw this.#failure('ended while starting')
      if (Date.now() > deadline) throw this.#failure(`did not answer within ${START_TIMEOUT / 1000} s`)
      await sleep(20)
    }
  }

  #failure(what) {
    const tail = readFileSync(join(this.dir, LOG), 'utf8').split('\n').slice(-15).join('\n')
    return new Error(`${basename(this.#plan.program.command)} on port ${this.port} ${what}:\n${tail}`)
  }

  /** Sends a signal; one that ends the process is waited for. */
  async kill(signal = 'SIGKILL') {
    if (this.#child === undefined) return
    if (this.#container !== undefined) await run('docker', ['kill', '--signal', signal, this.#container])
    else this.#child.kill(signal)
    if (FATAL.has(signal)) await this.#untilExit()
  }

  async #untilExit() {
    // Keeps the process alive while the server ends, and not a moment longer.
    const patience = new AbortController()
    const late = sleep(STOP_TIMEOUT, false, { signal: patience.signal }).catch(() => false)
    const exited = await Promise.race([this.#exited.then(() => true), late])
    patience.abort()
    if (exited || this.#child === undefined) return
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  /** Freezes the process: it neither answers nor ends, and its connections stay open. */
  async pause() {
    if (this.#container !== undefined) await run('docker', ['pause', this.#container])
    else {
      await this.kill('SIGSTOP')
      await stopped(this.#child.pid)
    }
  }

  async resume() {
    if (this.#container !== undefined) await run('docker', ['unpause', this.#container])
    else await this.kill('SIGCONT')
  }

  /** Starts again on the same port, after an orderly end if it still runs. */
  async restart({ keepData = true } = {}) {
    await this.#end()
    if (!keepData) {
      for (const name of readdirSync(this.dir)) rmSync(join(this.dir, name), { recursive: true, force: true })
    }
    await this.start()
  }

  /** Ends the process and removes its folder. To stop twice is to stop once. */
  async stop() {
    await this.#end()
    if (this.#ownsDir) rmSync(this.dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
    this.#forgetDir()
  }

  async #end() {
    if (this.#child === undefined) return
    // A frozen process would not see the request to end; waking one that runs does nothing.
    await this.resume().catch(() => {})
    await this.kill('SIGTERM')
  }

  async [Symbol.asyncDispose]() {
    await this.stop()
  }
}

/** The signal is sent in no time; the threads of a server that is busy on another core stop a moment later. */
async function stopped(pid) {
  if (process.platform !== 'linux') return
  const tasks = `/proc/${pid}/task`
  const state = (task) => {
    const stat = readFileSync(join(tasks, task, 'stat'), 'latin1')
    return stat.charAt(stat.lastIndexOf(')') + 2)
  }
  const still = () => readdirSync(tasks).every((task) => 'TtZX'.includes(state(task)))
  try {
    for (let looks = 0; looks < MOST_LOOKS && !still(); looks++) await sleep(1)
  } catch (error) {
    // It ended, or a thread of it did.
    if (error.code !== 'ENOENT' && error.code !== 'ESRCH') throw error
  }
}
