// The table of what was run, in the docs. A run of some servers leaves the rows of the others alone.
import { SUITE_NAMES } from './run.mjs'

const HEAD = ['', 'store', 'server', ...SUITE_NAMES, 'date']
const BEGIN = '<!-- matrix: written by npm run matrix -->'
const END = '<!-- matrix: end -->'

/**
 * @param {string} text of the page
 * @param {{ id: string, cells: string[] }[]} rows what was run now
 * @param {readonly string[]} order the ids of all servers that there are
 */
export function merge(text, rows, order) {
  const [before, rest] = split(text, BEGIN)
  const [old, after] = split(rest, END)
  const all = new Map(
    old
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => [/`(.+?)`/.exec(line)[1], line]),
  )
  for (const { id, cells } of rows) all.set(id, `| ${cells.join(' | ')} |`)
  const lines = [
    `| ${HEAD.join(' | ')} |`,
    `|${HEAD.map(() => '---|').join('')}`,
    ...order.filter((id) => all.has(id)).map((id) => all.get(id)),
  ]
  return `${before}${BEGIN}\n\n${lines.join('\n')}\n\n${END}${after}`
}

function split(text, mark) {
  const at = text.indexOf(mark)
  if (at < 0) throw new Error(`the page lacks ${mark}`)
  return [text.slice(0, at), text.slice(at + mark.length)]
}

/** One row: passed, failed and not applicable of each kind of test, none of them hidden in another. */
export function rowOf({ id, store, server }, { version, suites, date }) {
  const cell = (counts) => {
    if (counts === undefined) return ''
    const { passed, failed, skipped } = counts
    const words = [`${passed} passed`]
    if (failed > 0) words.push(`**${failed} failed**`)
    if (skipped > 0) words.push(`${skipped} n/a`)
    return words.join(', ')
  }
  return {
    id,
    cells: [
      `\`${id}\``,
      store,
      `${server} ${version}`,
      ...SUITE_NAMES.map((name) => cell(suites[name])),
      date,
    ],
  }
}
