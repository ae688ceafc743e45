import type { Holdfast } from 'holdfast'

export interface Tickets {
  left(): Promise<number>
  take(how: { fence: bigint; signal: AbortSignal }): Promise<void>
}

/** Sells a ticket, if there is one, and if its turn comes in time. */
export async function sell(holdfast: Holdfast, tickets: Tickets): Promise<'sold' | 'sold out'> {
  return holdfast.mutex('train:G101').run(
    async (lease) => {
      if ((await tickets.left()) === 0) return 'sold out'
      await tickets.take({ fence: lease.token, signal: lease.signal })
      return 'sold'
    },
    { wait: 2000 },
  )
}
