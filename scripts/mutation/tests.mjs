// Runs test files in a copy of the tree, in a vitest of its own process (warm-vitest.mjs): one that hangs can be ended.
import { fork } from 'node:child_process'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const WARM = fileURLToPath(new URL('warm-vitest.mjs', import.meta.url))

/** The same tests every time: the seeds of random ones are given. */
const env = { ...process.env, PROGRAM_FIRST: '1000000', SIM_FIRST: '1000000', FORCE_COLOR: '0' }

/** Vitests that have not ended, each with its process group. */
export const running = new Set()

/** A vitest in a tree. It ends with the run that hangs or dies, and the next one starts it again. */
export class Tests {
  constructor(tree) {
    this.tree = tree
    this.child = null
  }

  /** What failed: nothing, a test, or the run. */
  async run({ mutant, files, bail, limit }) {
    this.child ??= await this.start()
    const { child } = this
    const { failed, took, late, ended, broken } = await new Promise((resolve) => {
      const gone = (why) => () => resolve({ failed: [why], took: [], ended: true })
      const timer = setTimeout(gone('no end in time'), limit)
      const died = gone('the tests end')
      child.once('exit', died)
      child.once('message', (answer) => {
        clearTimeout(timer)
        child.off('exit', died)
        resolve(answer)
      })
      child.send({ mutant, files: files?.map((file) => join(this.tree, file)), bail })
    })
    if (broken !== undefined) throw new Error(broken)
    if (ended) this.stop()
    return { failed, late, took: took.map(([file, ms]) => [relative(this.tree, file), ms]) }
  }

  start() {
    const child = fork(WARM, {
      cwd: this.tree,
      env,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      detached: true,
    })
    running.add(child)
    child.on('exit', () => running.delete(child))
    let errors = ''
    child.stderr.on('data', (chunk) => (errors = (errors + chunk).slice(-2000)))
    return new Promise((resolve, reject) => {
      child.once('message', () => resolve(child))
      child.once('exit', () => reject(new Error(`vitest does not start: ${errors}`)))
    })
  }

  stop() {
    if (this.child !== null) end(this.child)
    this.child = null
  }
}

export function end(child) {
  try {
    process.kill(-Number(child.pid), 'SIGKILL')
  } catch {
    // It has ended already.
  }
}
