/** Text for people. Programs ask for `--json`. */

export type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'dim' | 'bold'

const CODES: Readonly<Record<Colour, readonly [number, number]>> = {
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
  dim: [2, 22],
  bold: [1, 22],
}

/** Colours only where a person looks at it: on a terminal, unless NO_COLOR says otherwise. */
export function coloured(stream: NodeJS.WriteStream): boolean {
  return stream.isTTY && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb'
}

export function paint(colour: Colour, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  if (!coloured(stream)) return text
  const [on, off] = CODES[colour]
  return `\u001b[${on}m${text}\u001b[${off}m`
}

/** A cell, with a colour that does not count into its width. */
export type Cell = string | { readonly text: string; readonly colour: Colour }

/**
 * Columns as wide as they need to be; no lines between them, so that it can be cut and copied. On a terminal of `columns` the
 * widest are shortened until a row is a line: a table that is drawn again and again must not grow.
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  columns?: number,
): string {
  const texts = [header, ...rows.map((row) => row.map(textOf))]
  const widths = header.map((_, column) => Math.max(...texts.map((row) => width(row[column] ?? ''))))
  if (columns !== undefined) shorten(widths, columns - GAP.length * (header.length - 1))
  const line = (cells: readonly Cell[]): string =>
    cells
      .map((cell, column) => {
        const most = widths[column] ?? 0
        const text = cut(textOf(cell), most)
        const pad = column === cells.length - 1 ? '' : ' '.repeat(most - width(text))
        return (typeof cell === 'string' ? text : paint(cell.colour, text)) + pad
      })
      .join(GAP)
      .trimEnd()
  return [line(header.map((text) => ({ text, colour: 'dim' }))), ...rows.map(line)].join('\n')
}

const GAP = '  '
/** A column that is narrower says nothing. */
const NARROWEST = 8

function shorten(widths: number[], room: number): void {
  for (let over = widths.reduce((sum, one) => sum + one, 0) - room; over > 0; over--) {
    const widest = Math.max(...widths)
    if (widest <= NARROWEST) return
    widths[widths.indexOf(widest)] = widest - 1
  }
}

function cut(text: string, most: number): string {
  if (text.length <= most || width(text) <= most) return text
  const letters = Array.from((segmenter ?? new Intl.Segmenter()).segment(text), ({ segment }) => segment)
  return `${letters.slice(0, most - 1).join('')}…`
}

function textOf(cell: Cell): string {
  return plain(typeof cell === 'string' ? cell : cell.text)
}

// eslint-disable-next-line no-control-regex -- control characters are what this looks for
const TRICKY = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Names and owners are other people's. What breaks a line, turns it round or speaks to the terminal is spelt out. */
export function plain(text: string): string {
  return text.replace(TRICKY, (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`)
}

let segmenter: Intl.Segmenter | undefined

/** Characters as people count them. Wide scripts still come out a little crooked; measuring them would need a table. */
function width(text: string): number {
  // Made here and not above: it costs more than the rest of a start, and few commands print tables.
  segmenter ??= new Intl.Segmenter()
  return [...segmenter.segment(text)].length
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** For programs. Tokens are larger than numbers may be, so they travel as text. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part)))
}

/** Resolves when all that was printed is out, and what could not be written has been heard of ('error'). */
export async function written(stream: NodeJS.WriteStream): Promise<void> {
  // Nothing is written where nothing was: the command's own output may be on a full disk, which is none of ours.
  if (stream.writableLength > 0) await new Promise<void>((resolve) => stream.write('', () => resolve()))
  await new Promise((resolve) => setImmediate(resolve))
}

/** Messages that are not the answer: so that stdout stays clean. */
export function note(text: string): void {
  process.stderr.write(`holdfast: ${text}\n`)
}
