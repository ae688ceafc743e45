// What all plots share. A plot is one file without any other: it carries its own colours for light and dark, so that
// it can stand in a README, in the docs and on the page alike.
const STYLE = `
svg { color-scheme: light dark; }
.ground { fill: #ffffff; }
text { font: 12px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2933; }
.title { font-size: 14px; font-weight: 600; }
.note, .tick { fill: #5f6b7a; font-size: 11px; }
.grid { stroke: #e3e7ec; stroke-width: 1; }
.ours { fill: #0f8a7e; }
.peer { fill: #9aa7b5; }
.limit { fill: #cfd6de; }
.wrong { fill: #d64545; }
text.ours { fill: #0b6e65; font-weight: 600; }
text.peer, text.limit { fill: #3c4856; }
.end { paint-order: stroke; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.line.ours { stroke: #0f8a7e; fill: none; }
.line.strict { stroke-dasharray: 5 4; }
.line.peer { stroke: #9aa7b5; fill: none; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117; }
  text { fill: #e6edf3; }
  .note, .tick { fill: #9aa5b1; }
  .grid { stroke: #262d36; }
  .ours { fill: #2bc4b2; }
  .peer { fill: #5d6b7a; }
  .limit { fill: #39434f; }
  .wrong { fill: #f07171; }
  text.ours { fill: #4fd8c8; }
  text.peer, text.limit { fill: #b9c4cf; }
  .end { stroke: #0d1117; }
  .line.ours { stroke: #2bc4b2; }
  .line.peer { stroke: #75849a; }
}`

export const escapeXml = (text) =>
  String(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')

/** @param {{ width: number, height: number, label: string, body: string }} picture `label` is read aloud instead of it */
export const svg = ({ width, height, label, body }) =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" ` +
      `role="img" aria-label="${escapeXml(label)}">`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    body,
    '</svg>\n',
  ].join('\n')

const round = (value) => Number(value.toFixed(1))

export const text = (x, y, content, { kind = '', anchor = 'start' } = {}) =>
  `<text x="${round(x)}" y="${round(y)}"${kind && ` class="${kind}"`}${anchor === 'start' ? '' : ` text-anchor="${anchor}"`}>` +
  `${escapeXml(content)}</text>`

export const bar = (x, y, width, height, kind) =>
  `<rect class="${kind}" x="${round(x)}" y="${round(y)}" width="${round(Math.max(width, 1))}" height="${height}" rx="2"/>`

export const rule = (x1, y1, x2, y2) =>
  `<line class="grid" x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}"/>`

export const polyline = (points, kind) =>
  `<polyline class="line ${kind}" points="${points.map(([x, y]) => `${round(x)},${round(y)}`).join(' ')}"/>`

export const dot = (x, y, kind) => `<circle class="${kind}" cx="${round(x)}" cy="${round(y)}" r="3"/>`
