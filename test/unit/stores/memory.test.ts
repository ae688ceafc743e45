import { describe, expect, it } from 'vitest'

import { memoryStore } from '../../../src/stores/memory/index.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'

describe('the memory store', () => {
  const request = {
    weight: 1,
    capacity: 1,
    ttl: 1000,
    patience: 1000,
    tokens: 1,
    whenBusy: 'try',
    owner: '',
  } as const

  it('forgets names whose holders never came back, and keeps their tokens growing', async () => {
    const env = new VirtualEnv()
    const store = memoryStore({ now: () => env.instant() })
    const { queues } = store as unknown as { queues: Map<string, unknown> }
    const first = await store.claim({ ...request, name: 'name 0', id: 's.0' }, 0)
    for (let n = 1; n < 900; n++) await store.claim({ ...request, name: `name ${n}`, id: `s.${n}` }, 0)
    expect(queues.size).toBe(900)
    env.stall(1001)
    for (let n = 900; n < 1200; n++) await store.claim({ ...request, name: `name ${n}`, id: `s.${n}` }, 0)
    expect(queues.size).toBe(300)
    const again = await store.claim({ ...request, name: 'name 0', id: 's.again' }, 0)
    expect(again.kind === 'held' && first.kind === 'held' && again.token > first.token).toBe(true)
  })

  it('forgets a name at once when it is released and another one after it', async () => {
    const store = memoryStore()
    const { queues } = store as unknown as { queues: Map<string, unknown> }
    for (let n = 0; n < 100; n++) {
      await store.claim({ ...request, name: `name ${n}`, id: `s.${n}` }, 0)
      await store.release({ name: `name ${n}`, id: `s.${n}` }, undefined, 0)
    }
    expect(queues.size).toBe(1)
  })
})
