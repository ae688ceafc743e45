import type { Operation } from './wire.ts'

/** Characters of what is said unasked, and of most answers. */
export const SHORT_LINE: number = 64 * 1024
/** Of answers that may be longer: a page of names, and everybody who holds a name or waits for it. */
const LONG_LINES: Partial<Record<Operation, number>> = { list: 4 * 1024 * 1024, inspect: 16 * 1024 * 1024 }
export const LONGEST_LINE: number = Math.max(...Object.values(LONG_LINES))

/** Brackets within brackets: an answer in its line, a list in it, a claim in that. */
const DEEPEST = 6
/** Values of twenty thousand claims, and some. */
const MOST_VALUES = 250_000

const QUOTE = 34
const BACKSLASH = 92
const COMMA = 44
const OPENING = new Set([91, 123])
const CLOSING = new Set([93, 125])

/**
 * Whether a long line is worth parsing, as an answer to what was asked. JSON can be made of which a few megabytes take
 * seconds and gigabytes to parse, while every other lease of the process runs out. What a lock server says is flat, and
 * only some answers are long.
 */
export function isPlausible(line: string, asked: Operation): boolean {
  return line.length <= (LONG_LINES[asked] ?? SHORT_LINE) && isFlat(line)
}

function isFlat(line: string): boolean {
  let depth = 0
  let values = 0
  for (let at = 0; at < line.length; at++) {
    const code = line.charCodeAt(at)
    if (code === QUOTE) at = endOfText(line, at)
    else if (code === COMMA) values++
    else if (OPENING.has(code)) {
      depth++
      values++
    } else if (CLOSING.has(code)) depth--
    if (depth > DEEPEST || values > MOST_VALUES) return false
  }
  return true
}

/** Of the quote that ends the text that begins there. */
function endOfText(line: string, from: number): number {
  for (let at = line.indexOf('"', from + 1); at >= 0; at = line.indexOf('"', at + 1)) {
    let before = at - 1
    while (line.charCodeAt(before) === BACKSLASH) before--
    if ((at - before) % 2 === 1) return at
  }
  return line.length
}
