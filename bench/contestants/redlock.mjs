import Redlock from 'redlock'

import { openIoredis } from './drivers.mjs'
import { TTL } from './settings.mjs'
import { vote } from './vote.mjs'

const entry = (id, config, settings, more = {}) => ({
  id,
  family: 'redlock',
  renews: true,
  package: 'redlock',
  label: more.waitingOnly ? 'redlock 5, patient' : 'redlock 5',
  store: 'redis',
  role: 'peer',
  config,
  async open({ url }) {
    const { client, close } = await openIoredis(url)
    const redlock = new Redlock([client], settings)
    // Every busy attempt is an event here; unheard it would be thrown.
    redlock.on('error', () => {})
    return { ...vote(redlock, TTL), close }
  },
  ...more,
})

/** @type {import('./index.mjs').Contestant[]} */
export const redlock = [
  entry('redlock', 'default', {}),
  entry(
    'redlock-patient',
    'retryCount -1, retryDelay 10, retryJitter 10',
    { retryCount: -1, retryDelay: 10, retryJitter: 10 },
    { waitingOnly: true, growth: true },
  ),
]
