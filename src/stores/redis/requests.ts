import type { Unknown } from '../../core/contract.ts'
import { Deadline, Deadlines } from './deadlines.ts'
import { failed, isNoScript, unknown } from './failure.ts'
import type { Link } from './link.ts'
import type { Script } from './scripts.gen.ts'

/**
 * Requests to the server, each with an end: whatever the driver does with its promise, the caller hears `unknown` when
 * the time is up. While the driver is offline nothing is given to it: it would queue the command and send it long after
 * the caller has turned to something else.
 */
export class Requests {
  readonly link: Link
  private readonly deadlines = new Deadlines()
  private readonly held = new Set<Request<unknown>>()
  private stopListening: (() => void) | null = null
  private closed = false

  constructor(link: Link) {
    this.link = link
  }

  /** Runs a script; `args`: number of keys, keys, arguments. */
  script<T>(script: Script, args: string[], timeout: number, read: (reply: unknown) => T): Promise<T | Unknown> {
    return new Promise((resolve) => {
      args.unshift(script.sha1)
      const request = new ScriptRequest<T>(this, resolve, timeout, read)
      request.args = args
      request.text = script.lua
      this.begin(request as Request<unknown>)
    })
  }

  /** Anything else that is asked of the server. */
  other<T>(start: () => Promise<T>, timeout: number): Promise<T | Unknown> {
    return new Promise((resolve) => {
      const request = new OtherRequest<T>(this, resolve, timeout, (reply) => reply as T)
      request.start = start
      this.begin(request as Request<unknown>)
    })
  }

  /** What has not been answered yet is `unknown`. */
  close(): void {
    this.closed = true
    this.deadlines.expireAll()
  }

  /** @internal */
  done(request: Request<unknown>): void {
    this.deadlines.remove(request)
    if (this.held.size > 0 && this.held.delete(request)) this.listenWhileNeeded()
  }

  /** @internal */
  late(timeout: number): Unknown {
    if (this.closed) return unknown(new Error('the store was closed before the server answered'))
    if (this.link.ready()) return unknown(new Error(`no answer from the Redis server within ${timeout} ms`))
    const reason = this.link.notReadyBecause() ?? `no connection to the Redis server within ${timeout} ms`
    return unknown(new Error(reason))
  }

  private begin(request: Request<unknown>): void {
    this.deadlines.add(request, request.timeout)
    if (this.link.ready()) return request.send()
    this.held.add(request)
    this.listenWhileNeeded()
  }

  private listenWhileNeeded(): void {
    if (this.held.size === 0) {
      this.stopListening?.()
      this.stopListening = null
    } else {
      this.stopListening ??= this.link.onReady(() => this.sendHeld())
    }
  }

  private sendHeld(): void {
    if (!this.link.ready()) return
    const requests = [...this.held]
    this.held.clear()
    this.listenWhileNeeded()
    for (const request of requests) request.send()
  }
}

abstract class Request<T> extends Deadline {
  readonly timeout: number
  protected readonly requests: Requests
  protected settled = false
  private readonly resolve: (answer: T | Unknown) => void
  private readonly read: (reply: unknown) => T

  constructor(
    requests: Requests,
    resolve: (answer: T | Unknown) => void,
    timeout: number,
    read: (reply: unknown) => T,
  ) {
    super()
    this.requests = requests
    this.resolve = resolve
    this.timeout = timeout
    this.read = read
  }

  abstract send(): void

  override expire(): void {
    this.settle(this.requests.late(this.timeout))
  }

  protected follow(start: () => Promise<unknown>, onError: (error: unknown) => void): void {
    let reply: Promise<unknown>
    try {
      reply = start()
    } catch (error) {
      return this.settle(failed(error))
    }
    reply.then((answer) => this.answered(answer), onError)
  }

  protected answered(reply: unknown): void {
    if (this.settled) return
    let answer: T | Unknown
    try {
      answer = this.read(reply)
    } catch (error) {
      answer = failed(error)
    }
    this.settle(answer)
  }

  protected settle(answer: T | Unknown): void {
    if (this.settled) return
    this.settled = true
    this.requests.done(this as Request<unknown>)
    this.resolve(answer)
  }
}

class OtherRequest<T> extends Request<T> {
  start!: () => Promise<T>

  override send(): void {
    this.follow(this.start, (error) => this.settle(failed(error)))
  }
}

class ScriptRequest<T> extends Request<T> {
  args!: string[]
  text!: string

  override send(): void {
    this.follow(
      () => this.requests.link.evalsha(this.args),
      (error) => this.failed(error),
    )
  }

  /** A server that was restarted, flushed or promoted may not know the script. */
  private failed(error: unknown): void {
    if (this.settled) return
    if (!isNoScript(error)) return this.settle(failed(error))
    this.args[0] = this.text
    this.follow(
      () => this.requests.link.eval(this.args),
      (second) => this.settle(failed(second)),
    )
  }
}
