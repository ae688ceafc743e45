// Runs seeds of one scenario in a build until a check breaks: node lab/kill-one.mjs DIST SCENARIO CHECK SEEDS
// Prints one line of JSON. `check` as "*": every check that should hold has to, for all seeds.
import { pathToFileURL } from 'node:url'

const [, , dist, scenario, check, seeds] = process.argv
const { simulate } = await import(new URL('lab/sim/index.js', pathToFileURL(`${dist}/`)).href)

for (let seed = 1; seed <= Number(seeds); seed += 1) {
  const { verdicts } = await simulate({ scenario, seed })
  const broken = verdicts.find(
    (verdict) =>
      verdict.expected === 'holds' && verdict.seen === 'broke' && (check === '*' || verdict.check === check),
  )
  if (broken !== undefined) {
    console.log(JSON.stringify({ seed, check: broken.check, why: broken.why }))
    process.exit(0)
  }
}
console.log(JSON.stringify({ seed: null }))
process.exit(0)
