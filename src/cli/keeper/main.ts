import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Server } from 'node:net'
import { createInterface } from 'node:readline'
import type { Lease } from '../../runtime/lease.ts'
import { leave } from '../connect.ts'
import { EXIT, exitCodeOf, explain } from '../exit.ts'
import { acquire } from '../lock-option.ts'
import type { LockWish } from '../lock-option.ts'
import { reach } from '../reach.ts'
import { forget, socketOf } from './folder.ts'
import { lives } from './script-process.ts'
import { COMMIT } from './wire.ts'
import type { Order, Question, ReleaseReport, Report, Status, Unreached } from './wire.ts'

/**
 * The process behind `holdfast acquire`: takes a lock and keeps it until `holdfast release` asks for it back or the
 * script is gone. It begins as a child of `acquire` and outlives it.
 */

/** A process that is not one's child cannot be waited for, only looked at. */
const LOOK_MS = 500

async function main(): Promise<void> {
  // The terminal's keys, and the end of a service or a container, are meant for the script too. It may take its time to end,
  // and needs the lock until then; that it ended is seen soon enough.
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGHUP'] as const) process.on(signal, () => {})
  let told = false
  process.on('SIGTERM', () => (told = true))
  // Node would open a port for debuggers.
  process.on('SIGUSR1', () => {})
  const lines = createInterface({ input: process.stdin })
  const gone = new AbortController()
  lines.once('close', () => gone.abort())
  const [first] = (await once(lines, 'line')) as [string]
  const order = JSON.parse(first) as Order
  const { lease: id, script, address } = order
  const { signal } = gone
  const wish: LockWish = { ...order.wish, wait: order.wish.wait ?? Infinity }

  const { holdfast, spent } = await reach(address, wish, {
    signal,
    say: (text) => report({ kind: 'unreached', message: text }),
  })
  try {
    const lease = await acquire(holdfast, wish, { signal, spent })
    const keeper = new Keeper(lease)
    const server = await keeper.listen(id)
    try {
      const committed = once(lines, 'line', { signal }).then(
        ([word]) => word === COMMIT,
        () => false,
      )
      report({ kind: 'held', name: lease.name, token: String(lease.token), expires: expiresAt(lease) })
      // Nobody heard that the lock was taken: then it was not.
      // A service that calls it without a shell (ExecStart=) has process 1 for its script, which ends after everything else.
      if (await committed) await keeper.until(() => !lives(script) || (told && script.pid === 1))
      await keeper.release()
    } finally {
      server.close()
      forget(id)
    }
  } finally {
    await leave(holdfast)
  }
}

class Keeper {
  private readonly lease: Lease
  private finished: (() => void) | undefined
  private readonly over: Promise<void> = new Promise((resolve) => (this.finished = resolve))

  constructor(lease: Lease) {
    this.lease = lease
  }

  async listen(id: string): Promise<Server> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      socket.setEncoding('utf8').once('data', (word) => {
        const question = String(word).trim() as Question
        const done = (): void => {
          if (question === 'release') this.finished?.()
        }
        this.answer(question).then(
          (answer) => socket.end(`${JSON.stringify(answer)}\n`, done),
          () => socket.destroy(),
        )
      })
    })
    server.listen(socketOf(id))
    await once(server, 'listening')
    return server
  }

  /** Until it was given back, or `ended` says so. A lease that is lost stays here, so that `release` can say that it was. */
  async until(ended: () => boolean): Promise<void> {
    const looking = setInterval(() => ended() && this.finished?.(), LOOK_MS)
    await this.over
    clearInterval(looking)
  }

  async release(): Promise<ReleaseReport> {
    const outcome = await this.lease.release()
    return { outcome: outcome === 'expired' ? 'lost' : outcome }
  }

  private answer(question: Question): Promise<ReleaseReport | Status> {
    if (question === 'release') return this.release()
    const { name, token, held } = this.lease
    return Promise.resolve({ name, token: String(token), held, expires: expiresAt(this.lease) })
  }
}

function expiresAt(lease: Lease): number {
  return Math.floor(Date.now() + lease.remaining())
}

function report(said: Report | Unreached): void {
  process.stdout.write(`${JSON.stringify(said)}\n`)
}

process.stdout.on('error', () => {})
main().then(
  () => process.exit(EXIT.ok),
  (error: unknown) => {
    const said: Report = { kind: 'failed', message: explain(error), exitCode: exitCodeOf(error) }
    process.stdout.write(`${JSON.stringify(said)}\n`, () => process.exit(EXIT.ok))
  },
)
