import { Redlock } from '@sesamecare-oss/redlock'

import { openIoredis } from './drivers.mjs'
import { TTL } from './settings.mjs'
import { vote } from './vote.mjs'

const entry = (id, config, settings, more = {}) => ({
  id,
  family: 'sesamecare',
  renews: true,
  package: '@sesamecare-oss/redlock',
  label: more.waitingOnly ? '@sesamecare-oss/redlock, patient' : '@sesamecare-oss/redlock',
  store: 'redis',
  role: 'peer',
  config,
  async open({ url }) {
    const { client, close } = await openIoredis(url)
    const redlock = new Redlock([client], settings)
    redlock.on('error', () => {})
    return { ...vote(redlock, TTL), close }
  },
  ...more,
})

/** @type {import('./index.mjs').Contestant[]} */
export const sesamecare = [
  entry('sesamecare', 'default', {}),
  entry(
    'sesamecare-patient',
    'retryCount -1, retryDelay 10, retryJitter 10',
    { retryCount: -1, retryDelay: 10, retryJitter: 10 },
    { waitingOnly: true },
  ),
]
