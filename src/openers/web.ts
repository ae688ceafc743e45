import type { Openers, Row } from './opener.ts'

const http: Row = {
  load: async () => {
    const { openHttpStore } = await import('../stores/http/open.ts')
    return (url, { token }) => openHttpStore(url, { token })
  },
}

/** Without `node:` modules there are no sockets. */
export const openers: Openers = {
  memory: {
    load: async () => {
      const { memoryStore } = await import('../stores/memory/index.ts')
      return () => Promise.resolve(memoryStore())
    },
  },
  http,
  https: http,
}
