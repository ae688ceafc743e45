// At most so many at a time: node examples/semaphore.mjs [URL]
import { setTimeout as sleep } from 'node:timers/promises'
import { open } from 'holdfast'

const holdfast = await open(process.argv[2] ?? 'memory:')
const gpus = holdfast.semaphore('gpu', 2)
let busy = 0

async function train(model) {
  console.log(`${model} starts, ${++busy} of 2 in use`)
  await sleep(20)
  busy--
}

await Promise.all(['ant', 'bee', 'cat', 'dog'].map((model) => gpus.run(() => train(model))))
await holdfast.close()
