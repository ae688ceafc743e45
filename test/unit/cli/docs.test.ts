import { readFileSync } from 'node:fs'

import { describe, expect, it } from 'vitest'

import { COMMANDS } from '../../../src/cli/commands.ts'
import { EXIT } from '../../../src/cli/exit.ts'

const text = readFileSync(new URL('../../../docs/command.md', import.meta.url), 'utf8')

describe('docs/command.md', () => {
  it('lists the exit codes that there are', () => {
    const rows = [...text.matchAll(/^\| ([\d, ]+) \| ((?:`\w+`(?:, )?)+) \|/gm)]
    const listed = rows.flatMap(([, codes = '', names = '']) => {
      const numbers = codes.split(', ').map(Number)
      return names.split(', ').map((name, index) => [name.replaceAll('`', ''), numbers[index]])
    })
    const { ok: _, ...others } = EXIT
    expect(Object.fromEntries(listed)).toEqual(others)
  })

  it('names every command', () => {
    for (const name of Object.keys(COMMANDS)) expect(text).toMatch(new RegExp(`\`${name}[\` ]`))
  })

  it.each(Object.keys(COMMANDS))('and %s --help agree on what is asked for and told', async (name) => {
    const { spec } = await COMMANDS[name]!.load()
    expect(spec.name).toBe(name)
    expect(spec.examples.length).toBeGreaterThan(0)
    for (const example of spec.examples) expect(example).toContain('holdfast')
    const letters = Object.values(spec.options).flatMap(({ short }) => (short === undefined ? [] : [short]))
    expect(new Set(letters).size).toBe(letters.length)
    // The options of `run` are described in full.
    if (name !== 'run') return
    for (const [option, { short }] of Object.entries(spec.options)) {
      expect(text).toMatch(new RegExp(`\`[^\`]*--${option}\\b|\`-${short} `))
    }
  })
})
