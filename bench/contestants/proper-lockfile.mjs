import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

import lockfile from 'proper-lockfile'

const entry = (id, label, config, settings, more = {}) => ({
  id,
  family: 'proper-lockfile',
  package: 'proper-lockfile',
  label,
  store: 'redis',
  role: 'peer',
  config: `${config}; lock files, no Redis`,
  ownStore: true,
  async open({ folder }) {
    mkdirSync(folder, { recursive: true })
    return {
      lock(name) {
        const path = join(folder, encodeURIComponent(name))
        const options = { realpath: false, onCompromised: () => {}, ...settings }
        return { acquire: () => lockfile.lock(path, options), release: (release) => release() }
      },
      close: () => {},
    }
  },
  ...more,
})

/** @type {import('./index.mjs').Contestant[]} */
export const properLockfile = [
  entry('proper-lockfile', 'proper-lockfile', 'default (no retries)', {}),
  entry(
    'proper-lockfile-patient',
    'proper-lockfile, patient',
    'retries for ever, 5-20 ms',
    { retries: { forever: true, factor: 1, minTimeout: 5, maxTimeout: 20, randomize: true } },
    { waitingOnly: true },
  ),
]
