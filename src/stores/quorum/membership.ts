import type { MaybePromise, Unknown } from '../../core/contract.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { unknownForGood } from './failure.ts'
import type { Node } from './node.ts'
import type { Quorum } from './quorum.ts'
import { setUp } from './set-up.ts'

type Identity = { readonly kind: 'node'; readonly server: string } | Unknown

/**
 * Which servers the stores are. One server under two addresses, or five databases of one server, would have several
 * votes and fail together; so a store votes only when it has said which server it is, and that nobody else is.
 */
export class Membership {
  private readonly quorum: Quorum
  private readonly timeout: number
  private unknownNodes: number
  private refusal: Unknown | null = null
  private asking: Promise<void> | null = null
  private all: Promise<void> = Promise.resolve()
  private wasSetUp = false

  constructor(quorum: Quorum, timeout: number) {
    this.quorum = quorum
    this.timeout = timeout
    this.unknownNodes = quorum.nodes.length
  }

  /** All stores are known to be different ones. */
  get complete(): boolean {
    return this.unknownNodes === 0 && this.refusal === null
  }

  /** Nothing, or why no lock can be had. Waits only as long as fewer than a majority are known. */
  check(): MaybePromise<Unknown | undefined> {
    if (this.unknownNodes > 0 && this.asking === null) this.ask()
    if (this.refusal !== null) return this.refusal
    const { nodes, majority } = this.quorum
    if (this.asking === null || nodes.length - this.unknownNodes >= majority) return undefined
    return this.asking.then(() => this.refusal ?? undefined)
  }

  /** As `check`, and waits for every store that answers in its time. */
  async checkAll(): Promise<Unknown | undefined> {
    if (this.unknownNodes > 0 && this.asking === null) this.ask()
    await this.all
    return this.refusal ?? undefined
  }

  private ask(): void {
    const { nodes, majority } = this.quorum
    const missing = nodes.flatMap(({ server }, at) => (server === null ? [at] : []))
    let pending = missing.length
    let enough: (() => void) | null = null
    let everybody: (() => void) | null = null
    this.asking = new Promise((resolve) => (enough = resolve))
    this.all = new Promise((resolve) => (everybody = resolve))
    const identify = (at: number): void => {
      this.quorum.ask<Identity>(
        at,
        (voter) => voter.identify(this.quorum.settings.probation, this.timeout),
        (answer) => {
          pending--
          if (answer.kind === 'node') this.met(at, answer.server)
          if (pending === 0 || this.refusal !== null || nodes.length - this.unknownNodes >= majority)
            enough?.()
          if (pending > 0) return
          this.asking = null
          everybody?.()
        },
      )
    }
    this.first(() => missing.forEach(identify))
  }

  /** Once, and before anybody is asked who they are: from then on a new store is no longer unused. */
  private first(then: () => void): void {
    const { nodes, settings } = this.quorum
    const { probation, clock } = settings
    const terms = { probation, timeout: this.timeout, setTimer: clock.setTimer }
    const done = this.wasSetUp
      ? undefined
      : setUp(
          nodes.map(({ voter }) => voter),
          terms,
        )
    this.wasSetUp = true
    if (done === undefined) then()
    else done.then(then, then)
  }

  private met(at: number, server: string): void {
    const node = this.quorum.nodes[at] as Node
    if (node.server !== null) return
    const twin = this.quorum.nodes.find((other) => other.server === server)
    if (twin === undefined) {
      node.server = server
      this.unknownNodes--
      return
    }
    const message = `${twin.label} and ${node.label} are one server: it would have two votes, and take both away when it fails. Name each server once, and one database of it`
    this.refusal = unknownForGood(new InvalidArgumentError(message, { argument: 'stores', store: 'quorum' }))
  }
}
