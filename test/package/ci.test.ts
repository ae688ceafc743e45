import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { afterAll, describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('../../.ci/run', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'holdfast-ci-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The run of CI with another npm, which does what it is told when it is to test. */
async function ci(test: string): Promise<{ code: number | null; last: string }> {
  writeFileSync(join(folder, 'npm'), `#!/bin/sh\n[ "$1" != test ] || { ${test}; }\n`)
  chmodSync(join(folder, 'npm'), 0o755)
  const run = spawn(script, { env: { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}` } })
  let said = ''
  run.stdout.on('data', (text) => (said += String(text)))
  // No code: it died of the signal.
  const code = await new Promise<number | null>((resolve) => run.on('close', (how) => resolve(how)))
  return { code, last: said.trimEnd().split('\n').at(-1) ?? '' }
}

describe('the last line of CI', () => {
  it('says that all has passed', async () => {
    expect(await ci('true')).toMatchObject({
      code: 0,
      last: expect.stringContaining('in all, passed') as string,
    })
  })

  it('says that a step has failed, and how', async () => {
    expect(await ci('exit 3')).toMatchObject({
      code: 3,
      last: expect.stringContaining('in all, FAILED (3)') as string,
    })
  })

  it.each(['TERM', 'HUP'])(
    'says that it was ended by SIG%s, and does not claim to have passed',
    async (name) => {
      const { code, last } = await ci(`kill -${name} $PPID; sleep 0.1`)
      expect(code).not.toBe(0)
      expect(last).toContain('in all, FAILED')
    },
  )
})
