import type { Unknown } from '../../../core/contract.ts'
import { unknown } from '../../../core/unknown.ts'
import { Deadline } from '../../../transport/deadlines.ts'
import { failed, isDriversTimeout, isNoScript, isReadOnly } from '../failure.ts'
import type { Driver } from '../client/driver.ts'
import { isNone } from '../replies.ts'
import { Requests } from '../requests.ts'
import type { Script } from '../scripts.gen.ts'
import { Silence } from '../silence.ts'
import type { OpenVotes } from './open.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance } = globalThis

/**
 * Scripts on their way to one node, and their answers. A node whose connection is lost is not waited for: the other nodes
 * decide, and this one is asked again when it is back.
 */
export class VoteRequests {
  readonly requests: Requests
  readonly driver: Driver
  /**
   * Counts connections. An address may lead to another server with each of them, and a driver may send what was not
   * answered on one again on the next: what is asked on one and answered on another is nobody's answer.
   */
  connection = 0
  private readonly open: OpenVotes
  private readonly silence: Silence
  private wasReady = false
  /** The connection has been used, and was not seen to be lost since. */
  private inUse = false
  private stopListening: (() => void) | null = null
  private moved: (reachable: boolean) => void = () => {}

  constructor(driver: Driver, open: OpenVotes) {
    this.driver = driver
    this.open = open
    this.requests = new Requests(driver)
    this.silence = new Silence(driver)
  }

  ask<T>(question: Question<T>, timeout: number): Promise<T | Unknown> {
    return new Promise((resolve) => this.tell(question, timeout, resolve))
  }

  /** As `ask`. Calls back once, at once if the server cannot be asked. */
  tell<T>(question: Question<T>, timeout: number, heard: (answer: T | Unknown) => void): void {
    if (this.look()) question.begin(this, timeout, heard)
    else if (this.wasReady) heard(this.notConnected())
    else this.whenReady(question, timeout, heard)
  }

  /** Anything else that one server can be asked. */
  other<T>(start: () => Promise<T>, timeout: number): Promise<T | Unknown> {
    if (!this.look() && this.wasReady) return Promise.resolve(this.notConnected())
    return this.requests.ask<T | Unknown>(async () => {
      this.look()
      const { connection } = this
      const answer = await start()
      return connection === this.connection ? answer : this.fromAnother()
    }, timeout)
  }

  /** Calls back whenever a connection is lost, and when there is a new one. */
  onMove(listener: (reachable: boolean) => void): void {
    this.moved = listener
    this.stopListening ??= this.driver.onConnectionChange(() => {
      const wasInUse = this.inUse
      const ready = this.look()
      // One that was lost and made without a word in between.
      if (wasInUse && ready) this.lost()
      if (!ready || this.connection === 0) return
      this.moved(true)
      this.open.sentAll(false)
    })
  }

  /** Nobody knows whose answer it is. */
  fromAnother(): Unknown {
    return unknown(new Error('the connection to the Redis server was lost before it answered'))
  }

  heard(key: string): void {
    this.open.sentAll(true)
    if (this.silence.suspects) this.silence.answer(key)
  }

  refused(key: string): void {
    this.silence.refused(key)
  }

  heardNothing(key: string, timeout: number): Unknown {
    // What ends because the store is closed has not waited in vain.
    if (!this.requests.closed) this.silence.noAnswer(key, timeout)
    return this.requests.late(timeout)
  }

  close(): void {
    this.stopListening?.()
    this.requests.close()
  }

  /** Whether the server can be asked now. */
  private look(): boolean {
    const ready = this.driver.ready()
    if (ready) this.wasReady = this.inUse = true
    else if (this.inUse) {
      this.inUse = false
      this.lost()
    }
    return ready
  }

  private lost(): void {
    this.connection++
    this.moved(false)
  }

  /** The first connection is still being made. */
  private whenReady<T>(question: Question<T>, timeout: number, heard: (answer: T | Unknown) => void): void {
    const began = performance.now()
    const ready = this.requests.ask(() => Promise.resolve({ kind: 'ready' as const }), timeout)
    ready.then(
      (answer) => {
        if (answer.kind === 'unknown') heard(answer)
        else this.tell(question, Math.max(1, timeout - (performance.now() - began)), heard)
      },
      (error: unknown) => heard(failed(error)),
    )
  }

  private notConnected(): Unknown {
    const reason = this.driver.notReadyBecause()
    return reason === undefined
      ? unknown(new Error('the connection to the Redis server is lost'))
      : failed(reason)
  }
}

export async function loadScript(driver: Driver, { lua }: Script): Promise<void> {
  const [node] = await driver.primaries()
  await node?.send(['script', 'load', lua])
}

/** What a node is asked by a script, and where its answer goes. Is answered once, by the server or by the clock. */
export abstract class Question<T> extends Deadline {
  abstract readonly script: Script
  abstract readonly key: string
  /** A field of the key whose deletion is all that is asked for, unless it is not there: then the script knows more. */
  readonly field: string | null = null
  protected timeout = 0
  private connection = 0
  private to!: VoteRequests
  private listener!: (answer: T | Unknown) => void
  private settled = false

  /** The hash of the script, number of keys, keys, arguments. Nobody changes it. */
  abstract args(): string[]
  abstract read(reply: unknown): T

  begin(to: VoteRequests, timeout: number, listener: (answer: T | Unknown) => void): void {
    this.to = to
    this.connection = to.connection
    this.timeout = timeout
    this.listener = listener
    to.requests.deadlines.add(this, timeout)
    try {
      if (this.field === null) this.sendScript(to.driver)
      else this.delete(to.driver, this.field)
    } catch (error) {
      this.failed(error)
    }
  }

  override expire(): void {
    this.settle(this.to.heardNothing(this.key, this.timeout))
  }

  /** Called with an answer that came when its time was up, or by another connection: it may be another server's. */
  protected late(_answer: T): void {}

  /** Whether it may be sent a second time. A vote must not, if its own release can be ahead of it. */
  protected wanted(): boolean {
    return true
  }

  /** Called when the driver has answered it or failed it. `untold`: it may still send it, and will not tell. */
  protected over(_untold: boolean): void {}

  private delete(driver: Driver, field: string): void {
    driver.hdel(this.key, field).then(
      (deleted) => {
        // Nothing is sent when its time is up.
        if (this.settled || !isNone(deleted)) this.heard(deleted)
        else this.sendScript(driver)
      },
      (error: unknown) => this.failed(error),
    )
  }

  private sendScript(driver: Driver): void {
    driver.evalsha(this.args()).then(
      (reply) => this.heard(reply),
      (error: unknown) => {
        if (isNoScript(error)) this.notKnown(driver)
        else this.failed(error)
      },
    )
  }

  private notKnown(driver: Driver): void {
    const { script } = this
    if (this.settled || this.isElsewhere || !this.wanted()) {
      loadScript(driver, script).catch(() => {})
      return this.failed(new Error('the server did not know the script, and was told it'))
    }
    driver.eval([script.lua, ...this.args().slice(1)]).then(
      (reply) => this.heard(reply),
      (error: unknown) => this.failed(error),
    )
  }

  private get isElsewhere(): boolean {
    return this.connection !== this.to.connection
  }

  private heard(reply: unknown): void {
    this.over(false)
    this.to.heard(this.key)
    let answer: T
    try {
      answer = this.read(reply)
    } catch (error) {
      return this.failed(error)
    }
    if (this.isElsewhere) this.settle(this.to.fromAnother())
    if (this.settled) this.late(answer)
    else this.settle(answer)
  }

  private failed(error: unknown): void {
    this.over(isDriversTimeout(error))
    if (isReadOnly(error)) this.to.refused(this.key)
    this.settle(failed(error))
  }

  private settle(answer: T | Unknown): void {
    if (this.settled) return
    this.settled = true
    this.to.requests.deadlines.remove(this)
    this.listener(answer)
  }
}
