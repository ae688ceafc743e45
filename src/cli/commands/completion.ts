import { EXIT, UsageError } from '../exit.ts'
import { COMMANDS } from '../commands.ts'
import { command } from '../spec.ts'
import type { Command, CommandSpec } from '../spec.ts'
import { print } from '../table.ts'

const options = {} as const

const completion: Command = command({
  spec: {
    name: 'completion',
    usage: 'bash | zsh | fish',
    summary: 'Prints the completion script for a shell',
    options,
    words: [1, 1],
    choices: ['bash', 'zsh', 'fish'],
    examples: [
      'holdfast completion bash > /etc/bash_completion.d/holdfast',
      'holdfast completion zsh > "${fpath[1]}/_holdfast"',
      'holdfast completion fish > ~/.config/fish/completions/holdfast.fish',
    ],
  },

  async run({ words: [shell = ''] }) {
    const write = { bash, zsh, fish }[shell]
    if (write === undefined)
      throw new UsageError(`There is completion for bash, zsh and fish; not for "${shell}".`)
    const specs = await Promise.all(Object.values(COMMANDS).map(async ({ load }) => (await load()).spec))
    print(write(specs))
    return EXIT.ok
  },
})

export default completion

const flagsOf = ({ options: all }: CommandSpec): readonly string[] => [
  ...Object.keys(all).map((name) => `--${name}`),
  '--help',
]

function choicesOf(specs: readonly CommandSpec[]): Map<string, readonly string[]> {
  const found = specs.flatMap(({ options: all }) => Object.entries(all))
  return new Map(
    found.flatMap(([name, { choices }]) => (choices === undefined ? [] : [[`--${name}`, choices]])),
  )
}

/** Options that take a file. */
function filesOf(specs: readonly CommandSpec[]): readonly string[] {
  const found = specs.flatMap(({ options: all }) => Object.entries(all))
  return [...new Set(found.filter(([, { value }]) => value === 'FILE').map(([name]) => `--${name}`))]
}

function withChoices(specs: readonly CommandSpec[]): { name: string; choices: readonly string[] }[] {
  return specs.flatMap(({ name, choices }) => (choices === undefined ? [] : [{ name, choices }]))
}

function bash(specs: readonly CommandSpec[]): string {
  const choices = [...choicesOf(specs)].map(
    ([flag, values]) => `    ${flag}) COMPREPLY=($(compgen -W '${values.join(' ')}' -- "$word")); return ;;`,
  )
  return `_holdfast() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} words= at
  COMPREPLY=()
  # After -- comes a command of the user's.
  for ((at = 1; at < COMP_CWORD; at++)); do
    if [[ \${COMP_WORDS[at]} == -- ]]; then COMPREPLY=($(compgen -c -- "$word")); return; fi
  done
  case $before in
${choices.join('\n')}
    ${filesOf(specs).join('|')}) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  if ((COMP_CWORD == 1)); then
    words='${specs.map(({ name }) => name).join(' ')} help'
  else
    case \${COMP_WORDS[1]} in
${specs.map((spec) => `      ${spec.name}) words='${flagsOf(spec).join(' ')}' ;;`).join('\n')}
      help) words='${specs.map(({ name }) => name).join(' ')}' ;;
    esac
    # The first word, where there are only so many.
    if ((COMP_CWORD == 2)); then case \${COMP_WORDS[1]} in
${withChoices(specs)
  .map(({ name, choices: all }) => `      ${name}) words+=' ${all.join(' ')}' ;;`)
  .join('\n')}
    esac; fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _holdfast holdfast`
}

/** In the languages of zsh and fish, a text in single quotes. */
const quoted = (text: string): string => text.replaceAll("'", String.raw`'\''`)

function zsh(specs: readonly CommandSpec[]): string {
  const entry = (name: string, { short, value, help, choices }: CommandSpec['options'][string]): string => {
    const text = quoted(help).replaceAll(/[[\]:]/g, String.raw`\$&`)
    const argument =
      value === undefined ? '' : `:${value}:${choices === undefined ? '_files' : `(${choices.join(' ')})`}`
    const both = short === undefined ? `'--${name}` : `'(-${short} --${name})'{-${short},--${name}}'`
    return `        ${both}[${text}]${argument}'`
  }
  const cases = specs.map((spec) => {
    const lines = Object.entries(spec.options).map(([name, option]) => entry(name, option))
    const first = spec.choices === undefined ? '' : `'1:word:(${spec.choices.join(' ')})' `
    return `      ${spec.name}) _arguments ${lines.length === 0 ? '' : `\\\n${lines.join(' \\\n')} \\\n       `} ${first}'*::word:_default' ;;`
  })
  return `#compdef holdfast
_holdfast() {
  local -a commands=(
${specs.map(({ name, summary }) => `    '${name}:${quoted(summary)}'`).join('\n')}
  )
  if ((CURRENT == 2)); then
    _describe command commands
  else
    local name=$words[2]
    shift words
    ((CURRENT--))
    case $name in
${cases.join('\n')}
    esac
  fi
}
if [[ $funcstack[1] == _holdfast ]]; then _holdfast "$@"; else compdef _holdfast holdfast; fi`
}

function fish(specs: readonly CommandSpec[]): string {
  const lines = specs.flatMap(({ name: of, summary, options: all, choices: words = [] }) => [
    `complete -c holdfast -n __fish_use_subcommand -f -a ${of} -d '${quotedForFish(summary)}'`,
    ...words.map((word) => `complete -c holdfast -n '__fish_seen_subcommand_from ${of}' -f -a ${word}`),
    ...Object.entries(all).map(([name, { short, value, help, choices }]) => {
      const letter = short === undefined ? '' : ` -s ${short}`
      const argument =
        choices !== undefined ? ` -x -a '${choices.join(' ')}'` : value === undefined ? '' : ' -r'
      return `complete -c holdfast -n '__fish_seen_subcommand_from ${of}' -l ${name}${letter}${argument} -d '${quotedForFish(help)}'`
    }),
  ])
  return lines.join('\n')
}

const quotedForFish = (text: string): string => text.replaceAll(/['\\]/g, String.raw`\$&`)
