import type { Unknown } from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import { failed, isDriversTimeout, plainError } from './failure.ts'
import type { Driver, Node } from './client/driver.ts'

const { setTimeout, clearTimeout } = globalThis

/** A server may be made a replica under a connection that stands. So it is asked again, as long as it is used. */
const AGAIN_MS = 1_000

type Tell = (problem: Unknown | undefined) => void

/**
 * Whether the server is one whose locks others see. A replica with `replica-read-only no` takes every lock that it is asked
 * for, and nobody else hears of it: so no answer is believed before the server that gave it has said what it is. The question
 * travels beside the first command of a connection, and costs no time of its own. In a Cluster a replica sends everybody on. Where
 * there is no connection there is nobody to ask: what answers over HTTP has its own way to the primary.
 */
export class Role {
  /** The server is to be asked with the next command. */
  due: boolean
  /** What the server answers may be believed. */
  sure: boolean
  private readonly driver: Driver
  private connection = 0
  private asking = false
  private waiting: Tell[] = []
  private timer: NodeJS.Timeout | undefined
  private readonly stopListening: () => void

  constructor(driver: Driver) {
    this.driver = driver
    const unasked = driver.cluster || driver.connectionless === true
    this.due = !unasked
    this.sure = unasked
    this.stopListening = unasked ? () => {} : driver.onConnectionChange(() => this.moved())
  }

  /** Calls back when it is known whether an answer may be believed. */
  tell(tell: Tell): void {
    this.waiting.push(tell)
    this.look()
  }

  confirmed(): Promise<Unknown | undefined> {
    if (this.sure) return Promise.resolve(undefined)
    return new Promise((resolve) => this.tell(resolve))
  }

  look(): void {
    if (this.asking) return
    this.asking = true
    // What comes back before the answer waits for it.
    this.due = this.sure = false
    const { connection } = this
    // A driver's own time for an answer may be short, and what waits for this one was answered in it.
    const asked = this.ask().catch((error: unknown) => {
      if (isDriversTimeout(error)) return this.ask()
      throw error
    })
    asked.then(
      (problem) => {
        // It may be what another server said.
        if (connection === this.connection) this.known(problem)
      },
      (error: unknown) => {
        if (connection === this.connection) this.known(failed(error))
      },
    )
  }

  close(): void {
    this.stopListening()
    clearTimeout(this.timer)
  }

  /** What waits was answered before. The server that is asked from now on may be another, and say nothing about that. */
  private moved(): void {
    this.connection++
    clearTimeout(this.timer)
    this.known(unknown(new Error('the connection to the Redis server was lost before it said what it is')))
  }

  private known(problem: Unknown | undefined): void {
    this.asking = false
    this.sure = problem === undefined
    this.due = !this.sure
    for (const tell of this.waiting.splice(0)) tell(problem)
  }

  private async ask(): Promise<Unknown | undefined> {
    const [node] = await this.driver.primaries()
    if (node === undefined) return unknown(new Error('there is no server to ask what it is'))
    const role = await roleOf(node)
    if (role === 'replica') return unknown(new LocalWrites())
    if (role !== 'forbidden') this.askAgain()
    return undefined
  }

  private askAgain(): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => (this.due = true), AGAIN_MS)
    this.timer.unref()
  }
}

/** `replica`: one that takes writes. `unchecked`: it does not say so, and who answers may not be who takes the writes. */
type Answer = 'primary' | 'replica' | 'unchecked'

async function roleOf(node: Node): Promise<Answer | 'forbidden'> {
  const info = await node.send(['info', 'replication']).then(String, unlessRefused)
  if (info !== undefined) return roleIn(unlessQueued(info))
  const role = unlessQueued(await node.send(['role']).catch(unlessRefused))
  if (!Array.isArray(role)) return 'forbidden'
  return String(role[0]) === 'master' ? 'primary' : 'replica'
}

/** Of one that takes no writes it is said by itself, with every write; a proxy may send those elsewhere. */
export function roleIn(info: string): Answer {
  const role = /^role:([\w-]+)/m.exec(info)?.[1]
  if (role === 'master') return 'primary'
  return role === undefined || /^(slave|replica)_read_only:1/m.test(info) ? 'unchecked' : 'replica'
}

export class LocalWrites extends Error {
  constructor() {
    super(
      'the server is a replica that takes writes (replica-read-only no): a lock taken there is known to nobody else. Lead the connection to the primary',
    )
  }
}

/** Of servers, and of proxies, which do not all begin with a word in capitals. */
const REFUSED = /^(NOPERM|ERR|DENIED)\b|^(unsupported|unknown) command|^invalid request/i

/** In the middle of a transaction that the client's owner makes by hand, the server says nothing yet. */
export function unlessQueued<T>(reply: T): T {
  if (String(reply) === 'QUEUED') throw new Error('the client is in a transaction (MULTI) of its owner')
  return reply
}

/** The server has answered, and does not tell. */
function unlessRefused(error: unknown): undefined {
  if (REFUSED.test(plainError(error).message)) return undefined
  throw error
}
