import { randomFrom, shuffled } from './random.mjs'

/**
 * Runs all rounds: every contestant once in each round, in an order drawn anew, so that whatever the machine does
 * meanwhile falls on all of them.
 * @param {{ stage: any, bouts: readonly import('./plan.mjs').Bout[], seed: number, progress: any }} run
 * @returns {Promise<Map<import('./plan.mjs').Bout, Map<string, any[]>>>} metrics by contestant, then round
 */
export async function runBouts({ stage, bouts, seed, progress }) {
  const random = randomFrom(seed)
  progress.expect(bouts.reduce((sum, { plan, contestants }) => sum + plan.rounds * contestants.length, 0))
  const results = new Map()
  for (const bout of bouts) {
    const { workload, store } = bout
    progress.say(`${workload.id} on ${store}: ${workload.title}`)
    const began = performance.now()
    results.set(bout, await runBout(stage, bout, random, progress))
    await stage.clear()
    progress.say(`${workload.id} on ${store} took ${Math.round((performance.now() - began) / 1000)} s`)
  }
  return results
}

async function runBout(stage, { workload, plan, contestants }, random, progress) {
  const rounds = new Map(contestants.map(({ id }) => [id, []]))
  for (let round = 0; round < plan.rounds; round++) {
    for (const contestant of shuffled(contestants, random)) {
      progress.begin(workload.id, contestant.label, round + 1, plan.rounds)
      rounds.get(contestant.id)[round] = await oneRound(stage, workload, contestant, plan, progress)
      progress.end()
    }
  }
  return rounds
}

/** A library that breaks loses its round, not everybody's run. */
async function oneRound(stage, workload, contestant, plan, progress) {
  try {
    return await workload.round(stage, contestant, plan)
  } catch (error) {
    progress.say(`  ${contestant.label}: ${error.message}`)
    if (process.env.BENCH_STDERR === '1') progress.say(String(error.cause ?? error.stack))
    await stage.dismiss(contestant)
    return { failed: error.message }
  }
}
