import { describe, expect, it } from 'vitest'

import type { Guarantee, Guarantees } from '../../../src/core/contract.ts'
import { scenarios } from '../../../src/lab/sim/index.ts'
import { capabilities as memcached } from '../../../src/stores/memcached/capabilities.ts'
import { capabilitiesOf } from '../../../src/stores/redis/capabilities.ts'
import { capabilitiesFor } from '../../../src/stores/zookeeper/capabilities.ts'

const { guarantees: hybrid } = capabilitiesOf('hybrid')
const { guarantees: durable } = capabilitiesOf('durable')
const { guarantees: sessions } = capabilitiesFor(40_000)

/** Which line of a store's table of guarantees a scenario plays. */
const LINES: readonly (readonly [string, Guarantees, keyof Guarantees])[] = [
  ['redis/partition', hybrid, 'partition'],
  ['redis/restart-none', hybrid, 'storeRestart'],
  ['redis/restart-every-second', hybrid, 'storeRestart'],
  ['redis/restart-always', durable, 'storeRestart'],
  ['redis/failover', hybrid, 'failover'],
  ['redis/failover-durable', durable, 'failover'],
  ['redis/server-clock', hybrid, 'storeClockJump'],
  ['session/partition', sessions, 'partition'],
  ['session/restart', sessions, 'storeRestart'],
  ['session/server-clock', sessions, 'storeClockJump'],
  ['cas/partition', memcached.guarantees, 'partition'],
  ['cas/restart', memcached.guarantees, 'storeRestart'],
]

describe('what the simulation expects is what the stores promise', () => {
  it.each(LINES)('%s', (id, guarantees, line) => {
    const scenario = scenarios.find((one) => one.id === id)
    const promised: Guarantee = guarantees[line]
    expect(scenario?.expected.exclusivity).toBe(promised === 'holds' ? 'holds' : 'may break')
    expect(scenario?.mustBreak.includes('exclusivity')).toBe(promised !== 'holds')
    // `breaks`: tokens go back too. `fenced`: they must not.
    expect(scenario?.mustBreak.includes('token order')).toBe(promised === 'breaks')
    const { fencing } = id.startsWith('cas/') ? memcached : { fencing: 'monotonic' }
    const safe = promised === 'holds' || (promised === 'fenced' && fencing === 'monotonic')
    expect(safe && scenario?.expected['lost update'] !== 'holds').toBe(false)
  })
})
