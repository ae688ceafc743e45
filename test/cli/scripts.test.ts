import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describe, expect, it } from 'vitest'

import acquire from '../../src/cli/commands/acquire.ts'
import { tempFolder } from './cli.ts'

const docs = fileURLToPath(new URL('../../docs/', import.meta.url))

/** Every shell script in the documentation that takes a lock and goes on. */
function scripts(): readonly (readonly [string, string])[] {
  const found: (readonly [string, string])[] = acquire.spec.examples
    .filter((example) => /[;&]/.test(example))
    .map((example) => ['acquire --help', example])
  const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter((page) =>
    page.endsWith('.md'),
  )
  for (const page of [...pages, '../README.md']) {
    const text = readFileSync(join(docs, page), 'utf8')
    for (const [, script = ''] of text.matchAll(/```sh\n([^]*?)```/g))
      if (/^[^#\n]*holdfast acquire/m.test(script)) found.push([page, script])
  }
  return found
}

describe.each(['sh', 'bash'])('with %s', (shell) => {
  it.each(scripts())('a script of %s does not go on without its lock', (_, script) => {
    const bin = tempFolder()
    const done = join(bin, 'done')
    const program = (name: string, text: string): void => {
      writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
      chmodSync(join(bin, name), 0o755)
    }
    program('holdfast', 'exit 75')
    program('make', `touch ${done}`)
    // As it behaves on empty input: quiet, and content.
    program('jq', 'cat >/dev/null')
    const { status } = spawnSync(shell, ['-c', script], {
      env: { PATH: `${bin}:/usr/bin:/bin` },
      encoding: 'utf8',
    })
    expect(existsSync(done)).toBe(false)
    expect(status).toBe(75)
  })
})
