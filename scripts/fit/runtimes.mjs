// The conformance cases that say the most about a runtime (its timers, clocks, sockets and processes), by the packed
// package's own command, in other versions of Node and in other runtimes.
import { join } from 'node:path'

import { nodeOf } from '../node-matrix.mjs'
import { run } from './toolbox.mjs'

/** `lease/`: timers and clocks. `process/exclusion`: children, their channel, and a clock that they share. */
const CASES = ['lease/', 'process/exclusion']
const NODES = ['22', '24', '26']

/** They come as programs for a platform; others are theirs to try. */
const OTHERS = {
  'Bun 1.4': ['@oven/bun-linux-x64/bin/bun'],
  'Deno 2.9': ['@deno/linux-x64-glibc/deno', 'run', '--allow-all'],
}

export function runtimeChecks({ full, env }) {
  const [redis] = env.URLS.split(' ')
  const command = full.path('node_modules/holdfast/dist/cli/start.cjs')
  const conformance = async (program, args, urls) => {
    const each = urls.flatMap((url) =>
      CASES.map(async (only) => {
        const said = await run(program, [...args, command, 'conformance', url, '--only', only], {
          cwd: full.folder,
        })
        const [, passed] = /(\d+) passed, 0 failed/.exec(said) ?? []
        if (passed === undefined) throw new Error(said)
        return Number(passed)
      }),
    )
    const passed = await Promise.all(each)
    return `${passed.reduce((sum, one) => sum + one, 0)} cases`
  }
  const checks = {}
  const urls = (name) => ['memory:', redis, `sqlite:${full.path(`${name.replaceAll(' ', '-')}.db`)}`]
  for (const major of NODES) {
    checks[`Node ${major}: conformance`] = () => conformance(nodeOf(major), [], urls(`node-${major}`))
  }
  if (process.platform === 'linux' && process.arch === 'x64') {
    for (const [name, [program, ...args]] of Object.entries(OTHERS)) {
      checks[`${name}: conformance`] = () =>
        conformance(join(full.home, 'node_modules', program), args, urls(name))
    }
  } else {
    console.log('not run here, only on Linux with x64: Bun, Deno')
  }
  return checks
}
