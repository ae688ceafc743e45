import type { AssertHeldOptions, Lease } from '../../runtime/lease.ts'

/** What a lease throws that is asked to. Those of other libraries have no such question. */
export function asserted(lease: Lease, options?: AssertHeldOptions): unknown {
  try {
    if ('assertHeld' in lease) lease.assertHeld(options)
    return undefined
  } catch (error) {
    return error
  }
}

interface Wrong {
  readonly call: string
  readonly why: unknown
}

interface Asked {
  /** Of the lock that was asked for. */
  readonly name: string
  /** What it said that its token is when it was given. */
  readonly token: bigint
  readonly held: boolean
  readonly left: number
  readonly ttl: number
}

const says = (what: string): Wrong => ({ call: 'a lease', why: new Error(`it says ${what}`) })

/** Clocks are asked one after the other. */
const CLOCK_MS = 2

/** Where the answers of a lease do not go together. `left` was asked before `held`. */
export function wrongIn(lease: Lease, { name, token, held, left, ttl }: Asked): Wrong | undefined {
  // Those of other libraries may not know how long they are good for.
  const ours = 'assertHeld' in lease
  if (ours && lease.name !== name) return says(`that it is one on "${lease.name}"`)
  if (ours && typeof lease.token !== 'bigint') return says(`that its token is a ${typeof lease.token}`)
  if (ours && lease.token !== token) return says(`that its token was ${token} and is ${lease.token}`)
  if (!held) {
    const over = !ours || lease.remaining() <= 0
    return over ? undefined : says('that it is not held, and that something is left of it')
  }
  if (left <= 0) return says('that it is held, and that nothing is left of it')
  if (!ours) return undefined
  if (left > ttl + CLOCK_MS) return says(`that ${Math.round(left)} ms are left of it, of ${ttl}`)
  const why = asserted(lease)
  if (why !== undefined && lease.held) return { call: 'assertHeld', why }
  if (asserted(lease, { atLeast: ttl * 2 }) !== undefined) return undefined
  return {
    call: 'assertHeld',
    why: new Error('it says nothing of a lease that lasts for less than was asked'),
  }
}
