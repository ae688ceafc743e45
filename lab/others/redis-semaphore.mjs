// redis-semaphore's Mutex with its own settings: refreshed at 0.8 of its time, asked for every 10 ms.
import { Redis } from 'ioredis'

import { peers } from '../../bench/peers.mjs'
import { labClient } from './adapter.mjs'

export async function open({ url, ttl }) {
  const { Mutex } = await peers.redisSemaphore()
  const redis = new Redis(url)
  redis.on('error', () => {})
  const take = async (name, waitMs) => {
    const lost = new AbortController()
    const patience = waitMs === 0 ? { acquireAttemptsLimit: 1 } : { acquireTimeout: waitMs }
    const mutex = new Mutex(redis, name, {
      ...patience,
      lockTimeout: ttl,
      onLockLost: (error) => lost.abort(error),
    })
    if (!(await mutex.tryAcquire())) return null
    const held = () => mutex.isAcquired
    const release = async () => {
      const had = mutex.isAcquired
      await mutex.release()
      return had ? 'released' : 'expired'
    }
    return { signal: lost.signal, held, sure: held, release }
  }
  return labClient({ take, close: () => redis.disconnect() })
}
