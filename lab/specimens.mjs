// The flawed designs, each through the scenario that breaks it, and holdfast through the same one.
import { redisPair, runSpecimen, SPECIMENS } from '../dist/lab/specimens/index.js'
import { redis } from '../scripts/services.mjs'

/** @param {import('./servers.mjs').LabServers} servers */
export function specimenTasks(servers) {
  return SPECIMENS.flatMap((specimen) => {
    const casts = specimen.ours === undefined ? ['flawed'] : ['flawed', 'ours']
    return casts.map((cast) => ({
      id: `specimen/${specimen.id}/${cast}`,
      title: `${cast === 'flawed' ? 'specimen' : 'holdfast'}: ${specimen.title}`,
      run: async () => runSpecimen(specimen, cast, await serversFor(specimen.needs, servers)),
    }))
  })
}

async function serversFor(needs, servers) {
  if (!servers.has(needs === 'redisPair' ? 'redis' : needs)) return {}
  if (needs === 'redisPair') return { redisPair: () => redisPair((options) => redis(options)) }
  return { [needs]: await servers.get(needs) }
}
