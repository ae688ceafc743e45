// Sales per second of one stock in 1, 2, 4, 8 and 16 segments: node examples/striped-stock-speed.mjs [URL] [sales] [sellers]
import { setTimeout as sleep } from 'node:timers/promises'
import { open } from 'holdfast'
import { stripedStock } from 'holdfast/recipes'

const [, , url = 'memory:', sales = '500', sellers = '64'] = process.argv
const holdfast = await open(url)

for (const segments of [1, 2, 4, 8, 16]) {
  // A database at a distance of two milliseconds, one to read and one to write.
  const rows = Array.from({ length: segments }, () => ({ left: 0, fence: 0n }))
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
  const stock = stripedStock(holdfast, `tickets:${segments}`, { segments, storage })
  await stock.fill(Number(sales))
  const began = performance.now()
  let sold = 0
  const sell = async () => {
    while ((await stock.take()) !== null) sold++
  }
  await Promise.all(Array.from({ length: Number(sellers) }, sell))
  const perSecond = Math.round((sold / (performance.now() - began)) * 1000)
  console.log(`${segments} segments: ${sold} sold, ${perSecond} per second`)
}
await holdfast.close()
