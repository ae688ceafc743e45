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

/** Runs it with programs in the place of its own: what `holdfast acquire` and `release` and the work end with. Tells how it ends, and what was done. */
function run(
  shell: string,
  script: string,
  { acquire: taken = 0, release = 0, make = 0 }: { acquire?: number; release?: number; make?: number },
): { status: number | null; worked: boolean } {
  const bin = tempFolder()
  const done = join(bin, 'done')
  const program = (name: string, text: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  program('holdfast', `[ "$1" = release ] && exit ${release}; echo lease; exit ${taken}`)
  program('make', `touch ${done}; exit ${make}`)
  // As it behaves on empty input: quiet, and content.
  program('jq', 'cat >/dev/null')
  const { status } = spawnSync(shell, ['-c', script], {
    env: { PATH: `${bin}:/usr/bin:/bin` },
    encoding: 'utf8',
  })
  return { status, worked: existsSync(done) }
}

describe.each(['sh', 'bash'])('with %s', (shell) => {
  it.each(scripts())('a script of %s does not go on without its lock', (_, script) => {
    expect(run(shell, script, { acquire: 75 })).toEqual({ status: 75, worked: false })
  })

  it.each(scripts())('a script of %s fails when its work fails, or its lock was lost', (_, script) => {
    expect(run(shell, script, {})).toEqual({ status: 0, worked: true })
    expect(run(shell, script, { make: 2 })).toEqual({ status: 2, worked: true })
    expect(run(shell, script, { release: 79 })).toEqual({ status: 79, worked: true })
  })
})
