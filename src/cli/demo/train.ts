import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * One train's tickets, in a file that several processes share. Selling one is a read, some time for the customer to pay,
 * and a write: two sellers who do it at the same time sell the same seat. Deliberately so; this is what a lock is for.
 */
export class Train {
  private readonly file: string

  constructor(file: string) {
    this.file = file
  }

  open(seats: number): void {
    this.write(seats)
  }

  /** The seat that was sold, or null when the train is full. */
  async sell(paying: () => Promise<unknown>): Promise<number | null> {
    const left = Number(readFileSync(this.file, 'utf8'))
    if (left === 0) return null
    await paying()
    this.write(left - 1)
    return left
  }

  /** By renaming, so that nobody reads half a number: what goes wrong here is to be the sellers' fault alone. */
  private write(left: number): void {
    const draft = `${this.file}.${randomUUID()}`
    writeFileSync(draft, String(left))
    renameSync(draft, this.file)
  }
}

export const pay = (): Promise<void> => sleep(2)
