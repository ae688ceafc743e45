import { open } from '../../open.ts'
import type { Lock } from '../../locks/lock.ts'
import { credentialsOf } from '../connect.ts'
import type { StoreAddress } from '../store-option.ts'
import { pay, Train } from './train.ts'

/** A process that sells tickets until there are none. Told what to do by the process that forked it. */

export interface SellerOrder {
  readonly file: string
  /** The store's address; null: sell without a lock. */
  readonly address: StoreAddress | null
  readonly ttl: number
}

export type ToSeller =
  | { readonly kind: 'begin'; readonly order: SellerOrder }
  /** In the next sale, stand still between reading and writing. */
  | { readonly kind: 'stand still' }

export type FromSeller =
  | { readonly kind: 'ready' }
  /** `waited`: milliseconds for the lock. */
  | { readonly kind: 'sold'; readonly seat: number; readonly waited: number; readonly token: string }
  | { readonly kind: 'standing still'; readonly token: string }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly message: string }

const LOCK = 'train:G101'

let standStill = false

function tell(message: FromSeller): void {
  process.send?.(message)
}

async function sellAll({ file, address, ttl }: SellerOrder): Promise<void> {
  const train = new Train(file)
  if (address === null) {
    const nothing = { waited: 0, token: 0n }
    while (await sellOne(train, nothing)) {}
    return
  }
  const holdfast = await open(address.url, { ttl, ...credentialsOf(address) })
  const lock = holdfast.mutex(LOCK, { wait: 60_000 })
  while (await sellLocked(lock, train)) {}
  await holdfast.close()
}

function sellLocked(lock: Lock, train: Train): Promise<boolean> {
  const asked = performance.now()
  return lock.run(({ token }) => sellOne(train, { waited: performance.now() - asked, token }))
}

async function sellOne(train: Train, { waited, token }: { waited: number; token: bigint }): Promise<boolean> {
  const seat = await train.sell(() => {
    if (!standStill) return pay()
    tell({ kind: 'standing still', token: String(token) })
    return new Promise(() => {})
  })
  if (seat === null) return false
  tell({ kind: 'sold', seat, waited, token: String(token) })
  return true
}

process.on('disconnect', () => process.exit())
process.on('message', (message: ToSeller) => {
  if (message.kind === 'stand still') {
    standStill = true
    return
  }
  sellAll(message.order).then(
    () => tell({ kind: 'done' }),
    (error: unknown) =>
      tell({ kind: 'failed', message: error instanceof Error ? error.message : String(error) }),
  )
})
tell({ kind: 'ready' })
