import { parseArgs } from 'node:util'
import { UsageError } from './exit.ts'
import type { Arguments, CommandSpec, OptionSpec } from './spec.ts'

type Options = Readonly<Record<string, OptionSpec>>

/** Reads a command's arguments by its spec. `node:util` does the splitting; commander would cost a tenth of the start. */
export function parse<O extends Options>(
  spec: CommandSpec<O>,
  argv: readonly string[],
): Arguments<O> | 'help' {
  const cut = argv.indexOf('--')
  const own = spec.takesCommand === true && cut >= 0 ? argv.slice(0, cut) : argv
  const command = spec.takesCommand === true && cut >= 0 ? argv.slice(cut + 1) : []
  if (own.includes('--help') || own.includes('-h')) return 'help'
  const { values, positionals } = split(spec, own)
  const [fewest, most] = spec.words
  const usage = `Usage: holdfast ${spec.name} ${spec.usage}`
  if (positionals.length < fewest) throw new UsageError(`${spec.name} needs more words.\n${usage}`)
  if (positionals.length > most) {
    const extra = positionals[most] ?? ''
    const hint = spec.takesCommand === true ? ' Put -- before the command to run.' : ''
    throw new UsageError(`"${extra}" is one word too many.${hint}\n${usage}`)
  }
  return { options: values as Arguments<O>['options'], words: positionals, command }
}

function split(
  spec: CommandSpec,
  args: readonly string[],
): { values: Record<string, string | true>; positionals: string[] } {
  const options = Object.fromEntries(
    Object.entries(spec.options).map(([name, { value, short }]) => [
      name,
      {
        type: value === undefined ? ('boolean' as const) : ('string' as const),
        ...(short === undefined ? {} : { short }),
      },
    ]),
  )
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
    return { values: values as Record<string, string | true>, positionals }
  } catch (error) {
    const message = error instanceof Error ? (error.message.split('. ')[0] ?? '') : String(error)
    throw new UsageError(`${message}. See holdfast ${spec.name} --help`)
  }
}
