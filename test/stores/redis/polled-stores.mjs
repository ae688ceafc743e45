import { Redis } from '@upstash/redis'
import { GlideClient } from '@valkey/valkey-glide'

// The build, for this is also what child processes load.
import { redisStore } from '../../../dist/stores/redis/index.js'

/** A store over HTTP. */
export function httpStore(options) {
  return redisStore(new Redis(options))
}

/** A store on a client of GLIDE, which it closes. */
export async function glideStore({ host, port }) {
  const client = await GlideClient.createClient({ addresses: [{ host, port }], requestTimeout: 2_000 })
  const store = redisStore(client)
  const close = store.close.bind(store)
  return Object.assign(store, {
    async close() {
      await close()
      client.close()
    },
  })
}
