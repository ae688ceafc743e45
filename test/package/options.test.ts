import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describe, expect, it } from 'vitest'

import { OPTIONS } from '../../src/locks/options.ts'
import { DEFAULT_LIMITS } from '../../src/server/limits.ts'

const REPORTS = fileURLToPath(new URL('../../etc', import.meta.url))
const DOCS = fileURLToPath(new URL('../../docs', import.meta.url))

/** The names in the first column of a page's table, each with what stands for it in the second. */
function table(page: string, heading: string): Record<string, string> {
  const [, section = ''] = readFileSync(join(DOCS, page), 'utf8').split(`\n${heading}\n`)
  const [part = ''] = section.split(/^##/m)
  const rows = [...part.matchAll(/^\| (`.*?`) \| (.*?) ?\|/gm)]
  return Object.fromEntries(
    rows.flatMap(([, names = '', values = '']) => {
      const shown = names.split(', ')
      const each = shown.length === 1 ? [values] : values.split(', ')
      return shown.map((name, at) => [name.replaceAll('`', ''), each[at] ?? ''])
    }),
  )
}

/** The optional members of everything that is called options, as the reports of the public API show them. */
function optionalMembers(report: string): string[] {
  const members: string[] = []
  let inside: string | undefined
  for (const line of readFileSync(join(REPORTS, report), 'utf8').split('\n')) {
    inside =
      /^export (?:interface|type) (\w*Options)\b/.exec(line)?.[1] ?? (line === '}' ? undefined : inside)
    if (inside !== undefined && /^\s+(readonly )?\w+\?: /.test(line))
      members.push(`${inside}: ${line.trim()}`)
  }
  return members
}

describe('options', () => {
  const members = readdirSync(REPORTS)
    .filter((name) => name.endsWith('.api.md'))
    .flatMap(optionalMembers)

  // `{ prefix: process.env.PREFIX }` is what people write, and with exactOptionalPropertyTypes it would not compile.
  it('may be undefined wherever they may be left out', () => {
    expect(members.length).toBeGreaterThan(100)
    expect(members.filter((member) => !/\| undefined;$|: \{$/.test(member))).toEqual([])
  })

  it('of a Holdfast are all told', () => {
    const told = table('guides/in-your-program.md', '## Options of a Holdfast')
    expect(Object.keys(told).sort()).toEqual([...OPTIONS.holdfast].sort())
  })

  it('that are limits of the server are all told, with their defaults', () => {
    const told = Object.entries(table('server.md', '### Limits'))
    const numbers = told.map(([name, value]) => [name, Number(value.replaceAll(',', ''))])
    expect(Object.fromEntries(numbers)).toEqual(DEFAULT_LIMITS)
  })
})

describe('events', () => {
  it('are all told', () => {
    const report = readFileSync(join(REPORTS, 'holdfast.api.md'), 'utf8')
    const [, inside = ''] = /^export interface LockEvents \{\n([^]*?)^\}/m.exec(report) ?? []
    const kinds = [...inside.matchAll(/^ {4}'?([\w-]+)'?: \{([^]*?)^ {4}\}/gm)].map(
      ([, kind = '', members = '']) => [
        `holdfast:${kind}`,
        [...members.matchAll(/readonly (\w+)/g)]
          .map(([, member = '']) => member)
          .filter((member) => !['name', 'store'].includes(member)),
      ],
    )
    expect(kinds.length).toBeGreaterThan(5)
    const told = Object.entries(table('guides/in-your-program.md', '## Events'))
    const members = told.map(([kind, text]) => [
      kind,
      [...text.matchAll(/`(\w+)`/g)].map(([, member]) => member),
    ])
    expect(Object.fromEntries(members)).toEqual(Object.fromEntries(kinds))
  })
})
