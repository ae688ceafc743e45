// Other libraries through the faults and checks of the lab. What breaks is told, and not judged: nobody here promised anything to us.
import { NEMESES, runCell } from '../../dist/lab/live/index.js'
import { hasStage, STAGES } from '../stages.mjs'
import { OTHERS } from './index.mjs'
import { prepare } from './maven.mjs'

const CLIENTS = 3

/** @param {{ seed: number, stages: { get(store: string): Promise<object> } }} options */
export function otherTasks({ seed, stages }) {
  return OTHERS.flatMap((other) => {
    const { leaveOut = [] } = STAGES[other.stage]
    const cannot = [...leaveOut, ...(other.leaveOut ?? [])]
    return NEMESES.filter(({ kind }) => !cannot.includes(kind)).map((nemesis) => ({
      id: `others/${other.id}/${nemesis.kind}`,
      title: `${other.label}: ${nemesis.what}`,
      run: () => lead(other, nemesis, { seed, stages }),
    }))
  })
}

async function lead(other, nemesis, { seed, stages }) {
  const { id, label, stage: where } = other
  const about = { id: `others/${id}/${nemesis.kind}`, store: label, title: `${label}: ${nemesis.what}` }
  const missing = hasStage(where)
    ? other.java && (await prepare(other.java))
    : `there is no ${where} on this machine`
  if (missing !== undefined) {
    const nowhere = { store: label, url: '', ttl: 0, clients: 0, names: ['none'] }
    return { ...(await runCell(nowhere, [{ ...nemesis, missing: () => missing }], { seed })), ...about }
  }
  const { settings, stop: _, ...open } = await stages.get(where)
  const { kind, ttl = settings.ttl } = nemesis
  const { close = () => {}, ...backend } = other.backend?.(open) ?? {}
  const { library, capabilities, tokens } = other
  const stage = {
    store: label,
    clients: CLIENTS,
    names: [`others-${seed}:${id}:${kind}`],
    ...open,
    ...settings,
    ttl,
    ...(library !== undefined && { foreign: { library, capabilities, tokens, ...backend } }),
  }
  const command = `npm run lab -- --exactly '${about.id}' --seed ${seed}`
  try {
    return unjudged({ ...(await runCell(stage, [nemesis], { seed, command })), ...about })
  } finally {
    await close()
  }
}

/** Of somebody else's library only what was seen is told. */
export function unjudged(record) {
  const { library } = OTHERS.find(({ id }) => record.id.startsWith(`others/${id}/`)) ?? {}
  if (library === undefined) return record
  return { ...record, verdicts: record.verdicts.map((verdict) => ({ ...verdict, expected: 'not asked' })) }
}
