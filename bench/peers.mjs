// The other libraries, loaded when one of them is asked for: this workspace has them, the lab leads them through its faults.
export const peers = {
  redlock: () => import('redlock'),
  redisSemaphore: () => import('redis-semaphore'),
  verrou: async () => ({
    ...(await import('@verrou/core')),
    ...(await import('@verrou/core/drivers/redis')),
  }),
}
