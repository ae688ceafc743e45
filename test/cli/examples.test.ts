import { spawn } from 'node:child_process'
import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

import { endAll, lockServer, program, Running, tempFolder } from './cli.ts'

const examples = fileURLToPath(new URL('../../examples/', import.meta.url))

/** Two of six starts, as a rule; on a machine that stops for a second, starts fall into other periods. */
const SCHEDULED = /^(?:the report\n){1,3}$/

/** What each example prints; one that is not in this table fails the test. */
const EXPECTED: Readonly<Record<string, RegExp>> = {
  'mutex.mjs': /^Ada: seat 3\nGrace: seat 2\nEdsger: seat 1\nBarbara: sold out\n$/,
  'read-write-lock.mjs': /^3 readers at once\nthe writer finds 0 readers\n$/,
  'semaphore.mjs': /^(?:(?:ant|bee|cat|dog) starts, [12] of 2 in use\n){4}$/,
  'give-up.mjs':
    /^try: null\nwait: true LOCK_TIMEOUT\nabort: true LOCK_ABORTED\nrelease: released\nheld afterwards: false\n$/,
  'self-locking.sh': /^running under my-job\n$/,
  'deploy.sh': /^building\ndeploying\ndone\n$/,
  'curl.sh': /^held: "weight":1\n.*\n$/,
  'demo.mjs': /with holdfast +20 of 20 +0 /,
  'cached-load.mjs':
    /^without a lock: .* asked \d+ times\nwith a lock in each process: .* asked 4 times\nwith a lock for all: .* asked 1 times\n$/,
  'leader.mjs':
    /^Ada leads\nseen from outside: true\nAda has put everything away\n(?:Grace leads\nGrace failed: no paper\n)+Barbara leads\nprobe: true leading\nBarbara has put everything away\n$/,
  'once-per-period.mjs':
    /^at three: 1 ran \(report 1\)\nat three by .*: 0 ran\nat four: 1 ran \(report 2\)\n$/,
  'schedule-croner.mjs': SCHEDULED,
  'schedule-node-cron.mjs': SCHEDULED,
  'striped-stock.mjs': /^sold 100 tickets, 100 different seats\n20 customers .*\none came back, 1 left\n$/,
  'striped-stock-speed.mjs': /^(?:\d+ segments: 500 sold, \d+ per second\n){5}$/,
}
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  'demo.mjs': ['--tickets', '20', '--sellers', '2'],
}

let server: Awaited<ReturnType<typeof lockServer>>
const bin = tempFolder()
const runtime = tempFolder()
beforeAll(async () => {
  server = await lockServer()
  // What installing the package would put there.
  writeFileSync(join(bin, 'holdfast'), `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`)
  chmodSync(join(bin, 'holdfast'), 0o755)
})
afterAll(() => server.kill('SIGKILL'))
afterEach(endAll)

describe('every example runs and prints what it should', () => {
  it.each(readdirSync(examples))('%s', async (name) => {
    const at = name === 'curl.sh' ? server.url.replace('holdfast:', 'http:') : server.url
    const args = ARGUMENTS[name] ?? [at]
    const [command, ...words] = name.endsWith('.sh')
      ? [join(examples, name)]
      : [process.execPath, join(examples, name)]
    const env = {
      ...process.env,
      XDG_RUNTIME_DIR: runtime,
      HOLDFAST_URL: server.url,
      PATH: `${bin}${delimiter}${process.env['PATH']}`,
    }
    const example = new Running(spawn(command ?? '', [...words, ...args], { env }))
    const code = await example.end()
    expect({ code, stderr: example.stderr }).toEqual({ code: 0, stderr: '' })
    expect(example.stdout).toMatch(EXPECTED[name] ?? /there is no such row/)
  })
})
