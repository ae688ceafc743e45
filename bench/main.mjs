// Side by side: holdfast, the other libraries and the raw limit, on this machine, in one run.
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

import { CONTESTANTS } from './contestants/index.mjs'
import { USAGE, readArgs } from './lib/args.mjs'
import { checkTargets, readTargets } from './lib/check.mjs'
import { environment } from './lib/environment.mjs'
import { withNewerNodes } from './lib/newer-node.mjs'
import { makePlan } from './lib/plan.mjs'
import { profile } from './lib/profile.mjs'
import { Progress } from './lib/progress.mjs'
import { writeResults } from './lib/result-file.mjs'
import { runBouts } from './lib/schedule.mjs'
import { Stage } from './lib/stage.mjs'
import { versions } from './lib/versions.mjs'
import { htmlPage } from './report/html.mjs'
import { sectionsOf } from './report/sections.mjs'
import { summarise } from './report/summary.mjs'
import { textTable } from './report/text.mjs'
import { WORKLOADS } from './workloads/index.mjs'

const LAST = fileURLToPath(new URL('./results/local/last.json', import.meta.url))

async function main() {
  const options = readArgs(process.argv.slice(2))
  if (options.help) return console.log(USAGE)
  if (options.list) return showList()
  const plan = withNewerNodes(makePlan(options), { say: (line) => console.error(line) })
  if (options.profile) return profile(plan, options)
  const results = await run(plan, options)
  show(results)
  writeResults(LAST, results)
  if (options.json !== undefined) writeResults(fromHere(options.json), results)
  if (options.html !== undefined) writeFileSync(fromHere(options.html), htmlPage(results))
  if (options.check) showCheck(checkTargets(readTargets(), results))
}

/** npm runs scripts in the package's folder; a path on the command line means the folder where it was typed. */
const fromHere = (path) => resolve(process.env.INIT_CWD ?? '.', path)

async function run(plan, options) {
  const progress = new Progress()
  const before = environment()
  progress.say(
    `${before.cpu}, ${before.cores} cores, Node ${before.node}, load ${before.loadBefore[0]}, seed ${options.seed}`,
  )
  if (before.loadBefore[0] > before.cores / 2)
    progress.say('The machine is busy with other things: expect wide spreads.')
  for (const { name, reason } of plan.leftOut) progress.say(`left out: ${name}, ${reason}`)
  const stage = await Stage.set(plan.contestants)
  // Ctrl-C reaches the measured processes too; the servers and the folder are for us to clear away.
  process.once('SIGINT', () => void stage.close().finally(() => process.exit(130)))
  try {
    const rounds = await runBouts({ stage, bouts: plan.bouts, seed: options.seed, progress })
    return {
      format: 1,
      environment: { ...before, loadAfter: loadavg()[0], servers: await stage.servers() },
      options: { quick: options.quick, seed: options.seed },
      versions: versions(plan.contestants),
      leftOut: plan.leftOut,
      results: plan.bouts.flatMap((bout) => summarise(bout, rounds.get(bout))),
    }
  } finally {
    await stage.close()
    progress.finish()
  }
}

function show(run) {
  for (const { title, table } of sectionsOf(run)) console.log(`\n${title}\n${textTable(table)}`)
}

function showCheck({ table, missed }) {
  console.log(`\nTargets\n${textTable(table)}`)
  if (missed > 0) process.exitCode = 1
}

function showList() {
  for (const { id, title } of WORKLOADS) console.log(`${id.padEnd(4)} ${title}`)
  console.log()
  for (const { family, store, label, config, missing } of CONTESTANTS) {
    console.log(
      `${family.padEnd(18)} ${store.padEnd(7)} ${label}: ${config}${missing ? ` (${missing})` : ''}`,
    )
  }
}

await main().catch((error) => {
  console.error(error.message)
  process.exitCode = 2
})
