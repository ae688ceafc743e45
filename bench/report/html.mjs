import { plotsOf } from './plots.mjs'
import { environmentLine, sectionsOf } from './sections.mjs'
import { escapeXml } from './svg.mjs'

const STYLE = `
:root { color-scheme: light dark; --ground: #fff; --ink: #1f2933; --soft: #5f6b7a; --line: #e3e7ec; --ours: #0b6e65; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #0d1117; --ink: #e6edf3; --soft: #9aa5b1; --line: #262d36; --ours: #4fd8c8; }
}
body { background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.05rem; margin: 2.5rem 0 .25rem; }
p { color: var(--soft); margin: .25rem 0 .75rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
th { color: var(--soft); font-weight: 500; }
tr.ours td { color: var(--ours); font-weight: 600; }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; }`

const row = (tag, cells) => `<tr>${cells.map((cell) => `<${tag}>${escapeXml(cell)}</${tag}>`).join('')}</tr>`

const tableHtml = ({ head, rows }) =>
  `<div class="wide"><table><thead>${row('th', head)}</thead><tbody>` +
  rows.map(({ kind, cells }) => row('td', cells).replace('<tr>', `<tr class="${kind}">`)).join('') +
  '</tbody></table></div>'

const list = (title, entries) =>
  entries.length === 0 ? '' : `<p>${title}: ${entries.map((entry) => escapeXml(entry)).join('; ')}.</p>`

/** Everything of a run on one page that needs nothing else. */
export function htmlPage(run) {
  const sections = sectionsOf(run).map(
    ({ title, about, table }) =>
      `<h2>${escapeXml(title)}</h2>${about ? `<p>${escapeXml(about)}</p>` : ''}${tableHtml(table)}`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>holdfast benchmark</title><style>${STYLE}</style></head><body>
<h1>holdfast benchmark</h1>
<p>${escapeXml(environmentLine(run))}</p>
${list(
  'Left out',
  run.leftOut.map(({ name, reason }) => `${name} (${reason})`),
)}
${[...plotsOf(run)]
  .filter(([name]) => name !== 'overview.svg')
  .map(([, plot]) => `<figure>${plot}</figure>`)
  .join('\n')}
${sections.join('\n')}
</body></html>
`
}
