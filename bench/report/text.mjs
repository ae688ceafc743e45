/** A table for the terminal: names to the left, numbers to the right. */
export function textTable({ head, rows }) {
  const lines = [head, ...rows.map(({ cells }) => cells)]
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)))
  const line = (cells) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])))
      .join('  ')
      .trimEnd()
  return [line(head), widths.map((width) => '─'.repeat(width)).join('  '), ...lines.slice(1).map(line)].join(
    '\n',
  )
}

const escape = (cell) => cell.replaceAll('|', '\\|')

/** The same for the docs. Our own rows are bold. */
export function markdownTable({ head, rows }) {
  const line = (cells) => `| ${cells.map(escape).join(' | ')} |`
  const body = rows.map(({ kind, cells: [name, ...numbers] }) =>
    line([kind === 'ours' ? `**${name}**` : name, ...numbers]),
  )
  return [line(head), `|${head.map((_, column) => (column === 0 ? '---' : '--:')).join('|')}|`, ...body].join(
    '\n',
  )
}
