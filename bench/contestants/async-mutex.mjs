import { Mutex } from 'async-mutex'

/** @type {import('./index.mjs').Contestant[]} */
export const asyncMutex = [
  {
    id: 'async-mutex',
    family: 'async-mutex',
    package: 'async-mutex',
    label: 'async-mutex',
    store: 'memory',
    role: 'peer',
    config: 'default',
    growth: true,
    open: async () => {
      const mutexes = new Map()
      const lock = (name) => {
        let mutex = mutexes.get(name)
        if (mutex === undefined) mutexes.set(name, (mutex = new Mutex()))
        return { acquire: () => mutex.acquire(), release: (release) => release() }
      }
      const hold = async (name) => {
        const drop = await lock(name).acquire()
        return { held: () => true, drop }
      }
      return { lock, hold, close: () => mutexes.clear() }
    },
  },
]
