import type { Unknown } from '../../core/contract.ts'
import { Deadline } from './deadlines.ts'
import { failed, isNoScript, unknown } from './failure.ts'
import type { Link } from './link.ts'
import { Requests } from './requests.ts'
import type { Script } from './scripts.gen.ts'
import { Silence } from './silence.ts'

export interface Question<T> {
  readonly script: Script
  /** Number of keys, keys, arguments. */
  readonly args: readonly string[]
  read(reply: unknown): T
  readonly timeout: number
  /** Not to be sent a second time: what follows it would overtake it, a release its own vote. */
  readonly once?: boolean
  /** Called with an answer that came when its time was up. */
  late?(answer: T): void
}

/**
 * Scripts on their way to one node, and their answers. A node whose connection is lost is not waited for: the other nodes
 * decide, and this one is asked again when it is back.
 */
export class VoteRequests {
  readonly requests: Requests
  private readonly link: Link
  private readonly silence: Silence
  private wasReady = false

  constructor(link: Link) {
    this.link = link
    this.requests = new Requests(link)
    this.silence = new Silence(link)
  }

  ask<T>(question: Question<T>): Promise<T | Unknown> {
    if (this.link.ready()) this.wasReady = true
    else if (this.wasReady) return Promise.resolve(this.notConnected())
    else return this.whenReady(question)
    return new Promise((resolve) => {
      const asked = new Asked(this, question, resolve)
      this.requests.deadlines.add(asked, question.timeout)
      asked.send(this.link)
    })
  }

  /** Anything else that one server can be asked. */
  other<T>(start: () => Promise<T>, timeout: number): Promise<T | Unknown> {
    if (this.wasReady && !this.link.ready()) return Promise.resolve(this.notConnected())
    return this.requests.ask(start, timeout)
  }

  heard(key: string): void {
    if (this.silence.suspects) this.silence.answer(key)
  }

  heardNothing(key: string, timeout: number): Unknown {
    // What ends because the store is closed has not waited in vain.
    if (!this.requests.closed) this.silence.noAnswer(key, timeout)
    return this.requests.late(timeout)
  }

  close(): void {
    this.requests.close()
  }

  /** The first connection is still being made. */
  private whenReady<T>(question: Question<T>): Promise<T | Unknown> {
    const { script, args, timeout } = question
    const read = (reply: unknown): T => question.read(reply)
    const began = performance.now()
    return this.requests
      .ask(() => Promise.resolve({ kind: 'ready' as const }), timeout)
      .then((answer) => {
        if (answer.kind === 'unknown') return answer
        return this.ask({ script, args, read, timeout: Math.max(1, timeout - (performance.now() - began)) })
      })
  }

  private notConnected(): Unknown {
    const reason = this.link.notReadyBecause()
    return reason === undefined
      ? unknown(new Error('the connection to the Redis server is lost'))
      : failed(reason)
  }
}

export async function loadScript(link: Link, { lua }: Script): Promise<void> {
  const [node] = await link.primaries()
  await node?.send(['script', 'load', lua])
}

class Asked<T> extends Deadline {
  private readonly to: VoteRequests
  private readonly question: Question<T>
  private readonly resolve: (answer: T | Unknown) => void
  private settled = false

  constructor(to: VoteRequests, question: Question<T>, resolve: (answer: T | Unknown) => void) {
    super()
    this.to = to
    this.question = question
    this.resolve = resolve
  }

  send(link: Link): void {
    const { script, args } = this.question
    link.evalsha([script.sha1, ...args]).then(this.heard, (error: unknown) => {
      if (!isNoScript(error)) return this.failed(error)
      if (this.question.once === true) {
        loadScript(link, script).catch(() => {})
        return this.failed(new Error('the server did not know the script, and was told it'))
      }
      link.eval([script.lua, ...args]).then(this.heard, this.failed)
    })
  }

  override expire(): void {
    this.settle(this.to.heardNothing(this.key, this.question.timeout))
  }

  private readonly heard = (reply: unknown): void => {
    this.to.heard(this.key)
    let answer: T
    try {
      answer = this.question.read(reply)
    } catch (error) {
      return this.failed(error)
    }
    if (this.settled) this.question.late?.(answer)
    else this.settle(answer)
  }

  private readonly failed = (error: unknown): void => this.settle(failed(error))

  private get key(): string {
    return this.question.args[1] ?? ''
  }

  private settle(answer: T | Unknown): void {
    if (this.settled) return
    this.settled = true
    this.to.requests.deadlines.remove(this)
    this.resolve(answer)
  }
}
