// A wall clock that can be moved for one server; see ../clock-shim.c. The machine's own clock is never touched.
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { find } from './find.mjs'
import { guard } from './guard.mjs'

/** @type {import('./find.mjs').Program} */
export const program = { name: 'cc', command: 'cc', apt: ['gcc', 'libc6-dev'], brew: 'gcc' }

const SOURCE = fileURLToPath(new URL('../clock-shim.c', import.meta.url))

/** Give `env` to the server that is to live in this time; `jump` then moves its clock, again and again. */
export async function clockShim() {
  if (process.platform !== 'linux') throw new Error('the wall clock of a process can be moved on Linux only')
  const { command } = await find(program)
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-clock-'))
  const forget = guard({ dir })
  const library = join(dir, 'clock-shim.so')
  const control = join(dir, 'offset')
  execFileSync(command, ['-O2', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library, SOURCE])
  const file = openSync(control, 'w')
  let offset = 0n
  const set = () => writeSync(file, new BigInt64Array([offset]), 0, 8, 0)
  set()
  return {
    env: { LD_PRELOAD: library, HOLDFAST_CLOCK_FILE: control },
    /** Moves the clock by that many milliseconds from where it is now; negative is back in time. */
    jump(ms) {
      offset += BigInt(Math.round(ms * 1000))
      set()
    },
    dispose() {
      closeSync(file)
      rmSync(dir, { recursive: true, force: true })
      forget()
    },
  }
}
