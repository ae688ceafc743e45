// @verrou/core on Redis. It renews nothing by itself; its notes tell users to call extend(), so a timer does.
import { Redis } from 'ioredis'

import { peers } from '../../bench/peers.mjs'
import { labClient } from './adapter.mjs'

/** A write that is sent with less than this left could arrive too late. The lab's own clients take the same. */
const MARGIN_MS = 120

export async function open({ url, ttl }) {
  const { Verrou, redisStore } = await peers.verrou()
  const redis = new Redis(url)
  redis.on('error', () => {})
  const verrou = new Verrou({
    default: 'redis',
    stores: { redis: { driver: redisStore({ connection: redis }) } },
  })
  const take = async (name, waitMs) => {
    const lock = verrou.createLock(name, ttl)
    const given = waitMs === 0 ? lock.acquireImmediately() : lock.acquire({ retry: { timeout: waitMs } })
    if (!(await given)) return null
    const lost = new AbortController()
    // What has run out is not brought back: somebody else may have it.
    const extend = () =>
      lock.isExpired()
        ? clearInterval(timer)
        : lock.extend().catch((error) => notOwned(error) && lost.abort(error))
    const timer = setInterval(extend, ttl / 3)
    const release = async () => {
      clearInterval(timer)
      try {
        await lock.release()
        return 'released'
      } catch (error) {
        if (notOwned(error)) return 'expired'
        throw error
      }
    }
    const sure = () => (lock.getRemainingTime() ?? 0) > MARGIN_MS
    return { signal: lost.signal, held: () => !lock.isExpired(), sure, release }
  }
  return labClient({ take, close: () => redis.disconnect() })
}

function notOwned(error) {
  return error.code === 'E_LOCK_NOT_OWNED'
}
