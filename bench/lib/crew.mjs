import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { within } from './clock.mjs'

const PROGRAM = fileURLToPath(new URL('./subject.mjs', import.meta.url))
const PATIENCE_MS = 90_000

/** The parent's end of one measured process. */
export class Subject {
  #child
  #number = 0
  #waiting = new Map()
  #contestant
  #wantsProfile
  #keepProfile
  /** Errors that nobody in the library caught. */
  strays = 0

  constructor(contestant, flags = []) {
    this.#contestant = contestant
    this.#child = fork(PROGRAM, [], {
      serialization: 'advanced',
      execPath: contestant.execPath ?? process.execPath,
      execArgv: flags,
      // A library's chatter must not run into the tables.
      stdio: ['ignore', 'ignore', process.env.BENCH_STDERR === '1' ? 'inherit' : 'ignore', 'ipc'],
    })
    this.#child.on('message', (message) => this.#hear(message))
    this.#child.on('exit', (code, signal) => this.#fail(new Error(`the process ended (${signal ?? code})`)))
  }

  /** @param {{ flags?: string[], keepProfile?: (profile: object) => void }} [wish] */
  static async open(contestant, endpoint, { flags, keepProfile } = {}) {
    const subject = new Subject(contestant, flags)
    try {
      await subject.#ask('open', { file: contestant.file, id: contestant.id, endpoint })
      subject.#wantsProfile = keepProfile
    } catch (error) {
      await subject.close()
      throw error
    }
    return subject
  }

  /** One step of a workload, inside that process. */
  async run(workload, step, params) {
    const result = await this.#ask('run', { workload, step, params })
    // The first step loads modules and warms up; a profile of that says nothing about the library.
    if (this.#wantsProfile !== undefined && this.#keepProfile === undefined) {
      await this.#ask('startProfile')
      this.#keepProfile = this.#wantsProfile
    }
    return result
  }

  async close() {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    if (this.#keepProfile !== undefined) this.#keepProfile(await this.#ask('stopProfile'))
    const asked = this.#ask('close').catch(() => {})
    const gone = once(this.#child, 'exit')
    await within(2000, asked)
    if (this.#child.connected) this.#child.disconnect()
    if (!(await within(1000, gone))) {
      this.#child.kill('SIGKILL')
      await gone
    }
  }

  #ask(operation, args = {}) {
    const number = ++this.#number
    return new Promise((resolve, reject) => {
      const late = () => {
        this.#child.kill('SIGKILL')
        reject(new Error(`${this.#contestant.id}: no answer within ${PATIENCE_MS / 1000} s`))
      }
      this.#waiting.set(number, { resolve, reject, timer: setTimeout(late, PATIENCE_MS) })
      this.#child.send({ number, operation, args }, (error) => error && this.#fail(error))
    })
  }

  #hear({ number, result, error, stray }) {
    if (stray !== undefined) {
      this.strays++
      return
    }
    const waiting = this.#waiting.get(number)
    this.#waiting.delete(number)
    clearTimeout(waiting?.timer)
    if (error === undefined) waiting?.resolve(result)
    else
      waiting?.reject(
        Object.assign(new Error(`${this.#contestant.id}: ${error.message}`), { cause: error.stack }),
      )
  }

  #fail(error) {
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer)
      reject(error)
    }
    this.#waiting.clear()
  }
}
