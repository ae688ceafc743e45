import { mkdirSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import { textTable } from '../report/text.mjs'
import { Stage } from './stage.mjs'

const FOLDER = fileURLToPath(new URL('../results/local/', import.meta.url))
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const SHOWN = 20

/**
 * One round of every chosen workload under the profiler: our client, or, to compare, what `--only` names.
 * The files open in any browser's tools.
 */
export async function profile({ contestants, bouts }, options) {
  const ours = contestants.filter(
    ({ role, secondary }) => options.only !== undefined || (role === 'ours' && !secondary),
  )
  const stage = await Stage.set(ours)
  mkdirSync(FOLDER, { recursive: true })
  try {
    for (const { workload, plan, contestants: all } of bouts) {
      for (const contestant of all.filter((one) => ours.includes(one))) {
        const profiles = []
        stage.profileWith((one) => profiles.push(one))
        await workload.round(stage, contestant, plan)
        await stage.clear()
        const files = profiles.map((one, number) =>
          save(one, `${workload.id}-${contestant.id}-${number}.cpuprofile`),
        )
        console.log(`\n${workload.id} ${contestant.label} on ${contestant.store}: ${workload.title}`)
        console.log(`${files.map((file) => relative(process.cwd(), file)).join('\n')}`)
        console.log(textTable(selfTimes(profiles, SHOWN)))
      }
    }
  } finally {
    await stage.close()
  }
  if (options.check || options.json !== undefined)
    console.log('\n--profile compares nothing; --check and --json have no effect.')
}

function save(profile, name) {
  const file = join(FOLDER, name)
  writeFileSync(file, JSON.stringify(profile))
  return file
}

/** Where the time went: of all samples that were not idle, which function was on top. */
export function selfTimes(profiles, shown) {
  const times = new Map()
  let busy = 0
  for (const { nodes, samples, timeDeltas } of profiles) {
    const places = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
    samples.forEach((id, number) => {
      const frame = places.get(id)
      // The last is the profiler answering us.
      if (frame.functionName === '(idle)' || (frame.functionName === 'dispatch' && frame.url === '')) return
      const time = Math.max(0, timeDeltas[number])
      busy += time
      const key = `${frame.functionName || '(anonymous)'}  ${placeOf(frame)}`
      times.set(key, (times.get(key) ?? 0) + time)
    })
  }
  const top = [...times].sort(([, a], [, b]) => b - a).slice(0, shown)
  return {
    head: ['function', 'self ms', 'share'],
    rows: top.map(([name, time]) => ({
      kind: 'ours',
      cells: [name, (time / 1000).toFixed(1), `${((time / busy) * 100).toFixed(1)} %`],
    })),
  }
}

function placeOf({ url, lineNumber }) {
  if (url === '') return ''
  const path = url.startsWith('file:') ? relative(ROOT, fileURLToPath(url)) : url
  return `${path}:${lineNumber + 1}`
}
