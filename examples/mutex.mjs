// One at a time, on all machines: node examples/mutex.mjs [URL]
import { open } from 'holdfast'

const holdfast = await open(process.argv[2] ?? 'memory:')
const stock = { left: 3, lastToken: 0n }

// Whatever guards the resource compares tokens: a holder that was paused for too long comes too late.
async function sell(customer, token) {
  if (token < stock.lastToken) throw new Error('a later holder was here already')
  const { left } = stock
  await new Promise((resolve) => setTimeout(resolve, 5))
  if (left === 0) return console.log(`${customer}: sold out`)
  Object.assign(stock, { left: left - 1, lastToken: token })
  console.log(`${customer}: seat ${left}`)
}

const customers = ['Ada', 'Grace', 'Edsger', 'Barbara']
await Promise.all(
  customers.map((customer) => holdfast.mutex('train:G101').run((lease) => sell(customer, lease.token))),
)
await holdfast.close()
