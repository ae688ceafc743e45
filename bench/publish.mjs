// Writes tables and plots into the docs from a result file. No number in them is typed by hand.
//
//   node bench/publish.mjs [results.json]
//
// A place for a table looks like this, and whatever stands in it is replaced:
//   <!-- bench:begin table w1 redis alone -->
//   <!-- bench:end -->
// Kinds: `table <workload> <store> <variant or series>`, `stripes <store>`, `plot <name>`, `environment`, `targets`, `left-out`.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import { readResults } from './lib/result-file.mjs'
import { filled } from './report/fill.mjs'
import { plotsOf } from './report/plots.mjs'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const IMAGES = join(ROOT, 'docs/img')
const PAGES = ['README.md', 'docs/performance.md']

const run = readResults(process.argv[2] ?? join(ROOT, 'bench/results/reference.json'))

mkdirSync(IMAGES, { recursive: true })
for (const [name, plot] of plotsOf(run)) writeFileSync(join(IMAGES, name), plot)

for (const page of PAGES.map((name) => join(ROOT, name)).filter((path) => existsSync(path))) {
  const before = readFileSync(page, 'utf8')
  const after = filled(before, run, relative(dirname(page), IMAGES))
  if (after !== before) writeFileSync(page, after)
  console.log(`${relative(ROOT, page)}: ${after === before ? 'unchanged' : 'written'}`)
}
