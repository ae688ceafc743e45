import { checkTargets, readTargets } from '../lib/check.mjs'
import { environmentLine, sectionsOf } from './sections.mjs'
import { stripesTable } from './stripes.mjs'
import { markdownTable } from './text.mjs'

const PLACE = /(<!-- bench:begin ([^\n]*?) -->\n)[\s\S]*?(<!-- bench:end -->)/g

/** A page with all its places filled from a run. A place that nothing can fill is an error: it would keep old numbers. */
export function filled(page, run, images) {
  return page.replace(PLACE, (_, begin, wish, end) => `${begin}${contentFor(wish, run, images)}\n${end}`)
}

function contentFor(wish, run, images) {
  const [kind, ...rest] = wish.trim().split(/\s+/)
  const make = KINDS[kind]
  if (make === undefined) throw new Error(`unknown place: ${wish}`)
  return make(run, rest.join(' '), images)
}

/** A store whose server or driver was not there is said to be missing; anything else is a place that nobody fills. */
function notMeasured({ leftOut }, key) {
  const store = key.split(' ')[1]
  const reason = leftOut.find(({ name }) => name === `holdfast on ${store}`)?.reason
  if (reason === undefined) throw new Error(`the results have no table ${key}`)
  return `*Not measured in this run: ${reason}.*`
}

const KINDS = {
  environment: (run) => `*${environmentLine(run)}*`,
  targets: (run) => markdownTable(checkTargets(readTargets(), run).table),
  plot: (run, name, images) => `![${name.replaceAll('-', ' ')}](${images}/${name}.svg)`,
  table(run, key) {
    const section = sectionsOf(run).find((one) => one.key === key)
    if (section === undefined) return notMeasured(run, key)
    return markdownTable(section.table)
  },
  stripes: (run, store) => markdownTable(stripesTable(run, store)),
  'left-out': (run) =>
    run.leftOut.map(({ name, reason }) => `- ${name}: ${reason}`).join('\n') || 'Nothing was left out.',
}
