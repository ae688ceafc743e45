import { expect } from 'vitest'

import { open } from 'holdfast'
import { checkExclusivity, checkTokenOrder } from 'holdfast/testkit'

import { earlierBuild } from '../../scripts/earlier-build.mjs'
import { Fleet, handOvers, PRESENT } from './fleet.ts'

export const BUILDS = ['earlier', 'present'] as const
const RUN_MS = 10_000
const KILL_EVERY_MS = 1_100

/** The folders with the modules of both. */
export type Builds = Readonly<Record<(typeof BUILDS)[number], string>>

export interface Place {
  readonly url: string
  readonly end: () => unknown
}

/** Runs members of both builds on the same locks, kills some, and tells what was wrong with what they believed or left. */
export async function problemsOfFleet(
  place: (builds: Builds) => Place | Promise<Place>,
): Promise<readonly unknown[]> {
  const earlier = earlierBuild()
  const builds = { earlier: earlier.dist, present: PRESENT }
  const { url, end } = await place(builds)
  const fleet = new Fleet(builds, url)
  try {
    const problems = await problemsOf(fleet)
    // Nothing is left of anybody, as soon as the leases of the killed have ended.
    const holdfast = await open(url)
    const left = async (): Promise<readonly string[]> => (await holdfast.list({ prefix: 'fleet:' })).names
    await expect.poll(left, { timeout: 20_000 }).toEqual([])
    await holdfast.close()
    return problems
  } finally {
    fleet.kill()
    await end()
    earlier.remove()
  }
}

async function problemsOf(fleet: Fleet): Promise<readonly unknown[]> {
  for (const build of [...BUILDS, ...BUILDS]) fleet.start(build)
  const slower = (): number => Math.min(...BUILDS.map((build) => fleet.grants()[build] ?? 0))
  await expect.poll(slower, { timeout: 30_000 }).toBeGreaterThan(5)
  await fleet.run(RUN_MS, KILL_EVERY_MS)
  const enough = slower() + 10
  await expect.poll(slower, { timeout: 30_000 }).toBeGreaterThan(enough)
  const { holds, complaints } = await fleet.stop()
  const { 'earlier to present': forward = 0, 'present to earlier': back = 0 } = handOvers(holds)
  const apart = Math.min(forward, back) === 0 ? ['the lock never went from one build to the other'] : []
  return [...complaints, ...checkExclusivity(holds), ...checkTokenOrder(holds), ...apart]
}
