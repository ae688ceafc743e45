// Many readers or one writer: node examples/read-write-lock.mjs [URL]
import { setTimeout as sleep } from 'node:timers/promises'
import { open } from 'holdfast'

const holdfast = await open(process.argv[2] ?? 'memory:')
const { read, write } = holdfast.readWriteLock('catalog')
let readers = 0
let most = 0

const look = () =>
  read.run(async () => {
    most = Math.max(most, ++readers)
    await sleep(20)
    readers--
  })

await Promise.all([look(), look(), look()])
console.log(`${most} readers at once`)
await Promise.all([look(), write.run(() => console.log(`the writer finds ${readers} readers`)), look()])
await holdfast.close()
