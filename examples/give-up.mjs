// What can happen to somebody who wants a lock, and how to tell it apart: node examples/give-up.mjs [URL]
import { LockAbortedError, LockTimeoutError, open } from 'holdfast'

const holdfast = await open(process.argv[2] ?? 'memory:')
const lock = holdfast.mutex('door')
const lease = await lock.acquire()

console.log('try:', await lock.tryAcquire())
const late = await lock.acquire({ wait: 50 }).catch((error) => error)
console.log('wait:', late instanceof LockTimeoutError, late.code)
const aborted = await lock.acquire({ signal: AbortSignal.timeout(50) }).catch((error) => error)
console.log('abort:', aborted instanceof LockAbortedError, aborted.code)

console.log('release:', await lease.release())
console.log('held afterwards:', lease.held)
await holdfast.close()
