// 100 tickets in two parts, 1 to 50 and 51 to 100, so that two can be sold at the same time: node examples/striped-stock.mjs [URL]
import { setTimeout as sleep } from 'node:timers/promises'
import { open } from 'holdfast'
import { stripedStock } from 'holdfast/recipes'

const holdfast = await open(process.argv[2] ?? 'memory:')

// The quantities are wherever you like; what matters is that a write compares the fence.
const rows = [0, 1].map(() => ({ left: 0, fence: 0n }))
const storage = {
  async read(segment) {
    await sleep(1)
    return rows[segment].left
  },
  async write(segment, left, fence) {
    await sleep(1)
    if (fence < rows[segment].fence) return false
    rows[segment] = { left, fence }
  },
}

const tickets = stripedStock(holdfast, 'train:G101', { segments: 2, storage })
await tickets.fill(100)
const customers = await Promise.all(Array.from({ length: 120 }, () => tickets.take()))

const seats = customers.flatMap(
  (taken) => taken?.parts.map(({ segment, left }) => segment * 50 + left + 1) ?? [],
)
console.log(`sold ${seats.length} tickets, ${new Set(seats).size} different seats`)
console.log(`${customers.filter((taken) => taken === null).length} customers were told that it is sold out`)
await tickets.put()
console.log(`one came back, ${await tickets.total()} left`)
await holdfast.close()
