import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { CommandError, EXIT } from '../exit.ts'
import type { FromSeller, SellerOrder, ToSeller } from './seller.ts'
import { scrubbed } from '../store-option.ts'

export interface Sale {
  readonly seller: number
  readonly seat: number
  readonly waited: number
  readonly token: string
  /** Milliseconds since the sellers began. */
  readonly at: number
}

/** What befell the seller that was killed. */
export interface HandOver {
  readonly killed: number
  readonly token: string
  readonly at: number
}

/** Several sellers, each a process of its own. */
export class Crew {
  readonly sales: Sale[] = []
  handOver: HandOver | undefined
  private readonly sellers: readonly ChildProcess[]
  private readonly onSale: (sale: Sale) => void
  private began = 0

  private constructor(sellers: readonly ChildProcess[], onSale: (sale: Sale) => void) {
    this.sellers = sellers
    this.onSale = onSale
  }

  /** Starts them; they wait for `work`. */
  static async start(size: number, onSale: (sale: Sale) => void): Promise<Crew> {
    const program = fileURLToPath(new URL('./seller.js', import.meta.url))
    const sellers = Array.from({ length: size }, () =>
      fork(program, { env: scrubbed(process.env), execArgv: [] }),
    )
    await Promise.all(sellers.map((seller) => once(seller, 'message')))
    return new Crew(sellers, onSale)
  }

  /** Sells until the train is full. With `killAfter`, the seller that holds the lock after that many sales dies in the middle. */
  async work(order: SellerOrder, killAfter: number = Infinity): Promise<number> {
    this.began = performance.now()
    const ends = this.sellers.map((seller, index) => this.follow(seller, index, killAfter))
    for (const seller of this.sellers) send(seller, { kind: 'begin', order })
    await Promise.all(ends)
    return performance.now() - this.began
  }

  dismiss(): void {
    for (const seller of this.sellers) if (seller.connected) seller.disconnect()
  }

  private follow(seller: ChildProcess, index: number, killAfter: number): Promise<void> {
    return new Promise((resolve, reject) => {
      seller.on('exit', (_, signal) => {
        if (signal === 'SIGKILL' && this.handOver?.killed === index) resolve()
        else reject(new CommandError(`Seller ${index + 1} ended unexpectedly.`, EXIT.software))
      })
      seller.on('message', (message: FromSeller) => {
        switch (message.kind) {
          case 'sold':
            this.sold(seller, index, message, killAfter)
            break
          case 'standing still':
            this.handOver = { killed: index, token: message.token, at: this.now() }
            seller.kill('SIGKILL')
            break
          case 'done':
            resolve()
            break
          case 'failed':
            reject(new CommandError(`Seller ${index + 1}: ${message.message}`, EXIT.storeUnavailable))
            break
          case 'ready':
            break
        }
      })
    })
  }

  private sold(
    seller: ChildProcess,
    index: number,
    { seat, waited, token }: SoldMessage,
    killAfter: number,
  ): void {
    const sale = { seller: index, seat, waited, token, at: this.now() }
    this.sales.push(sale)
    this.onSale(sale)
    if (this.sales.length === killAfter) send(seller, { kind: 'stand still' })
  }

  private now(): number {
    return performance.now() - this.began
  }
}

type SoldMessage = Extract<FromSeller, { kind: 'sold' }>

function send(seller: ChildProcess, message: ToSeller): void {
  seller.send(message)
}
