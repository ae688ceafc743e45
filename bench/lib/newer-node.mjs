import { nodeOf } from '../../scripts/node-matrix.mjs'

/**
 * The plan with a Node for everybody who needs another than the benchmark's: fetched once, into a cache of the user's. Whoever's
 * cannot be had is left out, with the reason.
 * @template {{ contestants: readonly any[], leftOut: readonly any[], bouts: readonly any[] }} P
 * @param {P} plan
 * @param {{ say: (line: string) => void, fetch?: (major: string) => string }} means
 * @returns {P}
 */
export function withNewerNodes(plan, { say, fetch = nodeOf }) {
  // Only for those who have something to do.
  const wanting = plan.bouts
    .flatMap(({ contestants }) => contestants)
    .filter(({ node }) => node !== undefined)
  if (wanting.length === 0) return plan
  const found = new Map()
  const reasons = new Map()
  for (const major of new Set(wanting.map(({ node }) => node))) {
    say(`Node ${major} for ${[...new Set(wanting.map(({ store }) => store))].join(', ')}: fetched if need be`)
    try {
      found.set(major, fetch(major))
    } catch (error) {
      reasons.set(major, `Node ${major} could not be fetched: ${firstLine(error)}`)
    }
  }
  const made = new Map(
    plan.contestants
      .filter(({ node }) => !reasons.has(node))
      .map((one) => [one, found.has(one.node) ? { ...one, execPath: found.get(one.node) } : one]),
  )
  const present = (contestants) => contestants.flatMap((one) => made.get(one) ?? [])
  const lacking = plan.contestants.filter(({ node }) => reasons.has(node))
  return {
    ...plan,
    contestants: present(plan.contestants),
    leftOut: [
      ...plan.leftOut,
      ...lacking.map(({ label, store, node }) => ({
        name: `${label} on ${store}`,
        reason: reasons.get(node),
      })),
    ],
    bouts: plan.bouts
      .map((bout) => ({ ...bout, contestants: present(bout.contestants) }))
      .filter(({ contestants }) => contestants.length > 0),
  }
}

const firstLine = (error) => String(error?.message ?? error).split('\n', 1)[0]
