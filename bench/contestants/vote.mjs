/** redlock and its descendant have the same calls. */
export const vote = (redlock, ttl) => ({
  lock: (name, wish = ttl) => ({
    acquire: () => redlock.acquire([name], wish),
    release: (lock) => lock.release(),
  }),
  /** Renewal exists only in `using`, so the lease lives as long as its function does. */
  hold: (name, wish) =>
    new Promise((resolve, reject) => {
      let lost = false
      redlock
        .using([name], wish, (signal) => {
          signal.addEventListener('abort', () => (lost = true))
          return new Promise((drop) => resolve({ held: () => !lost, drop }))
        })
        .catch((error) => {
          lost = true
          reject(new Error('not held', { cause: error }))
        })
    }),
})
