import { COMMANDS } from './commands.ts'
import type { CommandSpec } from './spec.ts'

const INTRO = `holdfast: locks that hold across processes and machines

Usage: holdfast COMMAND [options]

Commands:`

const OUTRO = `
The store is given by --store URL, --store-file FILE or the environment variable HOLDFAST_URL.
holdfast COMMAND --help tells more.`

export function overview(): string {
  const names = Object.entries(COMMANDS)
  const wide = Math.max(...names.map(([name]) => name.length))
  const lines = names.map(([name, { summary }]) => `  ${name.padEnd(wide)}  ${summary}`)
  return [INTRO, ...lines, OUTRO].join('\n')
}

export function commandHelp(spec: CommandSpec): string {
  const options = Object.entries(spec.options).map(([name, { value, short, help }]) => {
    const left = `${short === undefined ? '    ' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`
    return { left, help }
  })
  options.push({ left: '-h, --help', help: 'this text' })
  const wide = Math.max(...options.map(({ left }) => left.length))
  const blocks = [
    `Usage: holdfast ${spec.name} ${spec.usage}`,
    `${spec.summary}.${spec.details === undefined ? '' : ` ${spec.details}`}`,
    ['Options:', ...options.map(({ left, help }) => `  ${left.padEnd(wide)}  ${help}`)].join('\n'),
    ['Examples:', ...spec.examples.map((example) => `  ${example}`)].join('\n'),
  ]
  return blocks.join('\n\n')
}
