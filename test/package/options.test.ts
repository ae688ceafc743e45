import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { describe, expect, it } from 'vitest'

const REPORTS = fileURLToPath(new URL('../../etc', import.meta.url))

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
})
