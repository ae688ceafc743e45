// Where a source file can be changed in one point, and how. The formatter leaves no doubt: binary operators have spaces around them, type
// arguments do not. What stands in comments, texts and types is left alone.

/**
 * @typedef {{ line: number, column: number, cut: string, put: string, from: string, to: string, before: string, after: string }} Point
 * `before` and `after` are the whole line; at `column`, `put` stands instead of `cut`
 */

/** [what, instead]; each occurrence in a line is a point of its own. */
const OPERATORS = [
  [' === ', ' !== '],
  [' !== ', ' === '],
  [' && ', ' || '],
  [' || ', ' && '],
  [' ?? ', ' && '],
  [' < ', ' <= '],
  [' <= ', ' < '],
  [' > ', ' >= '],
  [' >= ', ' > '],
  [' + ', ' - '],
  [' - ', ' + '],
  [' * ', ' / '],
  ['Math.min(', 'Math.max('],
  ['Math.max(', 'Math.min('],
  [' += ', ' -= '],
  [' -= ', ' += '],
  [' ||= ', ' = '],
  [' ??= ', ' = '],
  ['++', '--'],
  ['--', '++'],
  ['true', 'false'],
  ['false', 'true'],
  ['return !', 'return '],
  ['if (!', 'if ('],
]

/** A statement that is one call and nothing else, and one that leaves. */
const CALL = /^(\s+)(?:await )?[a-z][\w.?!]*(?:\[[^\]]*\])?\.\w+\(.*\)$/
const LEAVES = /^(\s+)(?:if \(.*\) )?(?:return|continue|break)\b.*$/
const CONDITION = /^(\s*(?:\} else )?if )\((.*)\)( .*)$/

/** @returns {Point[]} */
export function pointsOf(text) {
  const lines = text.split('\n')
  const code = codeLines(lines)
  return lines.flatMap((line, index) => (code[index] ? pointsIn(line, index + 1) : []))
}

/** Which lines are neither comment, import, type nor part of a text over several lines. */
function codeLines(lines) {
  let comment = false
  let type = 0
  let text = false
  return lines.map((line) => {
    const bare = line.trim()
    if (bare.startsWith('/*')) comment = true
    const inside = comment || bare.startsWith('//') || bare.startsWith('*')
    if (bare.includes('*/')) comment = false
    if (inside) return false
    if (type > 0 || /^(export )?(declare )?(interface|type)\b/.test(bare)) {
      const open = (bare.match(/[{([]/g) ?? []).length - (bare.match(/[})\]]/g) ?? []).length
      if (type === 0) type = 1
      type += open
      if (type === 1 && !/[=|&,{]$/.test(bare)) type = 0
      return false
    }
    const wasText = text
    if ((bare.match(/`/g) ?? []).length % 2 === 1) text = !text
    return (
      !wasText &&
      !text &&
      !/^(import|export \{|export \*|readonly|private readonly|@|\|)/.test(bare) &&
      bare !== ''
    )
  })
}

function pointsIn(line, number) {
  const hidden = withoutTexts(line)
  const points = OPERATORS.flatMap(([from, to]) =>
    occurrences(hidden, from).map((at) => point(line, number, { at, from, to })),
  )
  const condition = CONDITION.exec(hidden)
  if (condition !== null) {
    const at = condition[1].length + 1
    const from = line.slice(at, at + condition[2].length)
    for (const to of ['true', 'false']) points.push(point(line, number, { at, from, to }))
  }
  if (CALL.test(hidden) || LEAVES.test(hidden)) {
    const at = line.length - line.trimStart().length
    points.push(point(line, number, { at, from: line.slice(at), to: ';' }))
  }
  return points
}

function point(line, number, { at, from, to }) {
  const after = line.slice(0, at) + to + line.slice(at + from.length)
  return {
    line: number,
    column: at,
    cut: from,
    put: to,
    from: from.trim(),
    to: to.trim(),
    before: line,
    after,
  }
}

/** The same length, with texts and comments at the end blanked out. */
function withoutTexts(line) {
  return line
    .replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/g, (text) => '_'.repeat(text.length))
    .replace(/ \/\/ .*$/, (text) => '_'.repeat(text.length))
    .replace(/=>/g, '__')
}

function occurrences(line, what) {
  const found = []
  const isWord = /^\w+$/.test(what)
  for (let at = line.indexOf(what); at !== -1; at = line.indexOf(what, at + 1)) {
    const whole = !isWord || (!/\w/.test(line[at - 1] ?? ' ') && !/\w/.test(line[at + what.length] ?? ' '))
    // A type's literal, as in `last?: false`.
    const typed = isWord && /\?:\s*$/.test(line.slice(0, at))
    if (whole && !typed) found.push(at)
  }
  return found
}
