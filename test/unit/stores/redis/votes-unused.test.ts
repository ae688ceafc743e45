import { describe, expect, it } from 'vitest'

import { isLoading, lookingOn } from '../../../../src/stores/redis/votes/unused.ts'

const info = (facts: Readonly<Record<string, number>>): string =>
  Object.entries(facts)
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join('')

describe('a server that was started', () => {
  it.each([
    [
      'from a snapshot just now',
      { rdb_last_load_keys_loaded: 3, aof_enabled: 0, uptime_in_seconds: 0 },
      31_000,
    ],
    ['from a snapshot', { rdb_last_load_keys_loaded: 3, aof_enabled: 0, uptime_in_seconds: 11 }, 20_000],
    ['from one long ago', { rdb_last_load_keys_loaded: 3, aof_enabled: 0, uptime_in_seconds: 31 }, 0],
    ['from a log', { rdb_last_load_keys_loaded: 3, aof_enabled: 1, uptime_in_seconds: 1 }, 0],
    [
      'from a snapshot, with a log since',
      { rdb_last_load_keys_loaded: 3, aof_enabled: 1, aof_last_rewrite_time_sec: 0, uptime_in_seconds: 11 },
      20_000,
    ],
    [
      'from a snapshot, with a log that is being begun',
      {
        rdb_last_load_keys_loaded: 3,
        aof_enabled: 1,
        aof_rewrite_in_progress: 1,
        aof_last_rewrite_time_sec: -1,
        uptime_in_seconds: 11,
      },
      20_000,
    ],
    [
      'from a log that is the same since',
      {
        rdb_last_load_keys_loaded: 3,
        aof_enabled: 1,
        aof_rewrite_in_progress: 0,
        aof_rewrite_scheduled: 0,
        aof_last_rewrite_time_sec: -1,
        uptime_in_seconds: 1,
      },
      0,
    ],
    ['empty', { rdb_last_load_keys_loaded: 0, aof_enabled: 0, uptime_in_seconds: 1 }, 0],
    ['and does not say how', { aof_enabled: 0, uptime_in_seconds: 1 }, 0],
  ])('%s', (_, facts, wait) => {
    expect(lookingOn(info(facts), 30_000)).toBe(wait)
  })

  it.each([
    [{ loading: 1 }, true],
    [{ loading: 0, async_loading: 1 }, true],
    [{ loading: 0, async_loading: 0 }, false],
    [{}, false],
  ])('and says %o', (facts, loading) => {
    expect(isLoading(info(facts))).toBe(loading)
  })
})
