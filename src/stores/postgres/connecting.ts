import type { PostgresPool } from './client.ts'

// Taken once: a user's fake timers must not make anybody wait for ever.
const { setInterval, clearInterval } = globalThis

/** Milliseconds. A connection that is on its way at two looks is given up. */
const LOOK_MS = 5000

/** A client of pg on its way to a server. */
interface Connecting {
  readonly _connecting?: unknown
  readonly _connected?: unknown
  readonly connection?: { readonly stream?: { destroy?(): void } }
}

interface PoolInside {
  readonly options?: { readonly connectionTimeoutMillis?: number }
  readonly _clients?: readonly Connecting[]
}

interface Watched {
  /** Who waits for a connection now. */
  waiting: number
  timer: NodeJS.Timeout | undefined
}

const pools = new WeakMap<PostgresPool, Watched>()

/**
 * By itself pg waits without end for a server that does not answer a new connection, and keeps a place in the pool for it: when a
 * network that had swallowed them is whole again, there would be none left. So this does what `connectionTimeoutMillis` does,
 * where the pool's owner has not set it, while somebody waits. Returns what to call when the wait is over.
 */
export function awaitConnect(pool: PostgresPool): () => void {
  let watched = pools.get(pool)
  if (watched === undefined) pools.set(pool, (watched = { waiting: 0, timer: undefined }))
  const state = watched
  state.waiting++
  if (state.timer === undefined && !(pool as PoolInside).options?.connectionTimeoutMillis) {
    let seen: readonly Connecting[] = []
    state.timer = setInterval(() => {
      const now = connecting(pool as PoolInside)
      for (const client of now) if (seen.includes(client)) client.connection?.stream?.destroy?.()
      seen = now
      if (state.waiting > 0) return
      clearInterval(state.timer)
      state.timer = undefined
    }, LOOK_MS).unref()
  }
  return () => void state.waiting--
}

const connecting = (pool: PoolInside): readonly Connecting[] =>
  (pool._clients ?? []).filter((client) => client._connecting === true && client._connected === false)
