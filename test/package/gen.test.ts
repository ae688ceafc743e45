import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { gen } from '../../scripts/gen.mjs'

const scriptsFolder = 'src/stores/redis/scripts'
const generated = 'src/stores/redis/scripts.gen.ts'
const header = '-- Says hello.\n-- KEYS: none\n-- ARGV: none\n-- returns: the greeting\n'

let root: string
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'holdfast-gen-'))))
afterEach(() => rmSync(root, { recursive: true }))

function write(path: string, text: string): void {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

const read = (): string => readFileSync(join(root, generated), 'utf8')

describe('the script generator', () => {
  it('has nothing to do where there are no scripts', () => {
    expect(gen({ root, check: true })).toEqual([])
  })

  it('keeps lines, drops comments and indentation, and hashes what goes over the wire', () => {
    write(`${scriptsFolder}/say-hello.lua`, `${header}\nif true then\n  -- why\n  return 'it\\'s'\nend\n`)
    expect(gen({ root, check: false })).toEqual([generated])

    const lua = "if true then\nreturn 'it\\'s'\nend"
    expect(read()).toContain('  readonly sayHello: Script\n')
    expect(read()).toContain(createHash('sha1').update(lua).digest('hex'))
    expect(read()).toContain(String.raw`lua: 'if true then\nreturn \'it\\\'s\'\nend',`)
  })

  it('pulls in each fragment once, also when fragments include each other', () => {
    write(`${scriptsFolder}/lib/now.lua`, '-- @include "base.lua"\nlocal now = base\n')
    write(`${scriptsFolder}/lib/base.lua`, 'local base = 1\n')
    write(`${scriptsFolder}/a.lua`, `${header}-- @include "now.lua"\n-- @include "base.lua"\nreturn now\n`)
    gen({ root, check: false })
    expect(read()).toContain(String.raw`lua: 'local base = 1\nlocal now = base\nreturn now',`)
  })

  it('reports a module that is not what its sources say, and leaves it alone', () => {
    write(`${scriptsFolder}/a.lua`, `${header}return 1\n`)
    gen({ root, check: false })
    expect(gen({ root, check: true })).toEqual([])

    write(`${scriptsFolder}/a.lua`, `${header}return 2\n`)
    expect(gen({ root, check: true })).toEqual([generated])
    expect(read()).toContain('return 1')
  })

  it.each([
    ['the purpose', '-- KEYS: none\n-- ARGV: none\n-- returns: 1\n', /a first line with the purpose/],
    ['ARGV', '-- Says.\n-- KEYS: none\n-- returns: 1\n', /lacks ARGV/],
    ['everything', '', /purpose, KEYS, ARGV, returns/],
  ])('refuses a script whose header lacks %s', (_, faulty, message) => {
    write(`${scriptsFolder}/a.lua`, `${faulty}return 1\n`)
    expect(() => gen({ root, check: true })).toThrow(message)
  })

  it('refuses a fragment that does not exist', () => {
    write(`${scriptsFolder}/a.lua`, `${header}-- @include "gone.lua"\nreturn 1\n`)
    expect(() => gen({ root, check: false })).toThrow(/no such fragment/)
  })
})
