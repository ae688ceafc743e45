import { describe, expect, it } from 'vitest'

import { available, mariadb, memcached, postgres, zookeeper } from '../../../scripts/services.mjs'
import { nemesis, runCell, settingsOf } from '../../../src/lab/live/index.ts'
import type { Stage } from '../../../src/lab/live/index.ts'
import { judge } from '../../../src/lab/record.ts'
import { openStore } from '../../../src/open.ts'
import { lockServer } from '../../cli/cli.ts'

interface Place extends AsyncDisposable {
  readonly url: string
}

interface Case {
  readonly there: boolean
  readonly start: () => Promise<Place>
  readonly faults?: readonly string[]
}

const places: Readonly<Record<string, Case>> = {
  mysql: { there: available('mariadb'), start: () => mariadb() },
  postgres: { there: available('postgres'), start: () => postgres() },
  zookeeper: { there: available('zookeeper'), start: () => zookeeper() },
  // Its leases end late, by whole seconds: a fault less.
  memcached: { there: available('memcached'), start: () => memcached(), faults: ['cut', 'kill'] },
  holdfast: {
    there: true,
    start: async () => {
      const server = await lockServer()
      const stop = async (): Promise<void> => {
        server.kill('SIGKILL')
        await server.end()
      }
      return { url: server.url, [Symbol.asyncDispose]: stop }
    },
  },
}

async function stageOn({ url }: Place, store: string): Promise<Stage> {
  const opened = await openStore(url)
  const { kind, capabilities } = opened
  await opened.close()
  return { store, url, clients: 3, names: [`lab-test:${store}`], ...settingsOf(kind, capabilities) }
}

// The full set, every fault on every store, is what `npm run lab` is for.
// On a machine that is slow it takes longer.
describe.each(Object.entries(places))(
  'Client processes on %s',
  { timeout: 180_000 },
  (store, { there, start, faults = ['cut', 'kill', 'pause'] }) => {
    it.skipIf(!there)(`hold what is promised under ${faults.join(', ')}`, async () => {
      await using place = await start()
      const nemeses = faults.flatMap((kind) => nemesis(kind) ?? [])
      const record = await runCell(await stageOn(place, store), nemeses, { seed: 1 })
      const surprises = record.verdicts.filter((one) => judge(one) !== 'as expected')
      // What a busy machine leaves undecided is no surprise.
      expect(surprises.filter(({ why }) => why?.includes('too slow to say') !== true)).toEqual([])
      expect(new Set(record.faults.map(({ kind }) => kind))).toEqual(new Set(faults))
      // The witness without fencing saw what the table says of a holder that stands still.
      expect(record.violations.some(({ check }) => check === 'lost update')).toBe(faults.includes('pause'))
    })
  },
)
