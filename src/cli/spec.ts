/** How a command is described: parsing, help and completion all read this, so that they cannot disagree. */
export interface OptionSpec {
  /** The value's name in help. Absent: the option takes none. */
  readonly value?: string
  /** One letter. */
  readonly short?: string
  readonly help: string
  /** The only values there are; for completion. */
  readonly choices?: readonly string[]
}

export interface CommandSpec<
  O extends Readonly<Record<string, OptionSpec>> = Readonly<Record<string, OptionSpec>>,
> {
  readonly name: string
  /** What follows the name: `NAME [options] -- command…`. */
  readonly usage: string
  readonly summary: string
  /** Longer words for `--help`. */
  readonly details?: string
  readonly options: O
  /** How many words besides options: fewest and most. */
  readonly words: readonly [number, number]
  /** The only values of the first word; for completion. */
  readonly choices?: readonly string[]
  /** What comes after `--` is a command of the user's. */
  readonly takesCommand?: true
  readonly examples: readonly string[]
}

/** What was asked for. An option is a string if it takes a value, else true; undefined when it was not given. */
export interface Arguments<O extends Readonly<Record<string, OptionSpec>>> {
  readonly options: { readonly [K in keyof O]?: O[K] extends { readonly value: string } ? string : true }
  readonly words: readonly string[]
  /** What came after `--`, if the command takes one. */
  readonly command: readonly string[]
}

/** A file in commands/. Answers with the exit code. */
export interface Command<
  O extends Readonly<Record<string, OptionSpec>> = Readonly<Record<string, OptionSpec>>,
> {
  readonly spec: CommandSpec<O>
  run(given: Arguments<O>): Promise<number>
}

/** Gives a command the names and types of its own options, and hides them from everybody else. */
export function command<const O extends Readonly<Record<string, OptionSpec>>>(made: Command<O>): Command {
  return made as unknown as Command
}
