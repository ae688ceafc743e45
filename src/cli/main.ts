import { COMMANDS } from './commands.ts'
import { EXIT, exitCodeOf, explain, UsageError } from './exit.ts'
import { parse } from './parse.ts'
import { note, print, written } from './table.ts'

async function main([name = '', ...rest]: readonly string[]): Promise<number> {
  const wantsHelp = name === '' || name === 'help' || name === '--help' || name === '-h'
  const asked = name === 'help' ? rest[0] : undefined
  if (wantsHelp && asked === undefined) {
    const { overview } = await import('./help.ts')
    print(overview())
    return name === '' ? EXIT.usage : EXIT.ok
  }
  if (name === '--version' || name === '-V') {
    const { version } = await import('./version.ts')
    print(version())
    return EXIT.ok
  }
  const entry = Object.hasOwn(COMMANDS, asked ?? name) ? COMMANDS[asked ?? name] : undefined
  if (entry === undefined) {
    throw new UsageError(`There is no command "${asked ?? name}". holdfast --help lists them.`)
  }
  const command = await entry.load()
  const given = asked === undefined ? parse(command.spec, rest) : 'help'
  if (given === 'help') {
    const { commandHelp } = await import('./help.ts')
    print(commandHelp(command.spec))
    return EXIT.ok
  }
  return command.run(given)
}

// A reader that went away (`holdfast ls | head -1`) is no fault. A full disk is: what was asked for is not there.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') process.exit(EXIT.ok)
  note(`The output cannot be written: ${code}`)
  process.exit(EXIT.system)
})

// What nobody reads any more need not be said; the command goes on.
process.stderr.on('error', () => undefined)

// Node would open a port for debuggers, to everybody on this machine. Some send it to reopen logs, out of habit.
process.on('SIGUSR1', () => undefined)

// If nothing is left to wait for before the command is done, that is a fault of ours, and must not look like success.
process.exitCode = EXIT.software

main(process.argv.slice(2)).then(
  (code) => finish(code),
  (error: unknown) => {
    note(explain(error))
    return finish(exitCodeOf(error))
  },
)

/** Not left to the event loop: a driver's idle connection would keep the command for a moment, or for ever. */
async function finish(code: number): Promise<void> {
  process.exitCode = code
  await written(process.stdout)
  await written(process.stderr)
  process.exit(code)
}
