import type { MaybePromise, Unknown } from '../../core/contract.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import { unknown, unknownForGood } from '../../core/unknown.ts'
import type { Node } from './node.ts'
import { probationOf } from './options.ts'
import type { Quorum } from './quorum.ts'
import { setUp } from './set-up.ts'

type Identity = { readonly kind: 'node'; readonly server: string } | Unknown

/** What is known of one store. */
interface Member {
  /** It has been one of the servers before: where it is another's twin now, its address has moved. */
  wasMet: boolean
  asked: boolean
  /** It may lead elsewhere since it was asked. */
  moved: boolean
}

interface Waiting {
  readonly everybody: boolean
  readonly resolve: (refusal: Unknown | undefined) => void
}

/**
 * Which servers the stores are. One server under two addresses, or five databases of one server, would have several
 * votes and fail together; so a store votes only when it has said which server it is, and that nobody else is. An address
 * may lead to another server with every new connection: then it is asked again.
 */
export class Membership {
  private readonly quorum: Quorum
  private readonly timeout: number
  private readonly members: readonly Member[]
  private unknownNodes: number
  private refusal: Unknown | null = null
  private pending = 0
  private waiting: Waiting[] = []
  private wasSetUp = false
  private settingUp: Promise<void> | null = null

  constructor(quorum: Quorum, timeout: number) {
    this.quorum = quorum
    this.timeout = timeout
    this.unknownNodes = quorum.nodes.length
    this.members = quorum.nodes.map(() => ({ wasMet: false, asked: false, moved: false }))
    for (const { voter, at } of quorum.nodes) voter.onMove?.((reachable) => this.moved(at, reachable))
  }

  /** Nothing, or why no lock can be had. Waits only as long as fewer than a majority are known. */
  check(): MaybePromise<Unknown | undefined> {
    return this.askAndWait(false)
  }

  /** As `check`, and waits for every store that answers in its time. */
  async checkAll(): Promise<Unknown | undefined> {
    return this.askAndWait(true)
  }

  private askAndWait(everybody: boolean): MaybePromise<Unknown | undefined> {
    const { nodes, short } = this.quorum
    if (this.refusal === null) for (const { at, server } of nodes) if (server === null) this.ask(at, short)
    if (this.isEnough(everybody)) return this.refusal ?? undefined
    return new Promise((resolve) => this.waiting.push({ everybody, resolve }))
  }

  private isEnough(everybody: boolean): boolean {
    if (this.pending === 0) return true
    const { nodes, majority } = this.quorum
    return !everybody && (this.refusal !== null || nodes.length - this.unknownNodes >= majority)
  }

  private ask(at: number, needed: boolean): void {
    const member = this.members[at] as Member
    if (member.asked) return
    member.asked = true
    this.pending++
    if (!this.wasSetUp) this.setUp()
    const identify = (): void => this.identify(at, needed)
    if (this.settingUp === null) identify()
    else this.settingUp.then(identify, identify)
  }

  /** Once, and before anybody is asked who they are: from then on a new store is no longer unused. */
  private setUp(): void {
    const { nodes, settings } = this.quorum
    const { probation, clock } = settings
    const voters = nodes.map(({ voter }) => voter)
    this.wasSetUp = true
    const done = setUp(voters, { probation, timeout: this.timeout, setTimer: clock.setTimer })
    const over = (): void => void (this.settingUp = null)
    this.settingUp = done?.then(over, over) ?? null
  }

  private identify(at: number, needed: boolean): void {
    const member = this.members[at] as Member
    member.moved = false
    // That the stores are new was said of those that there were then. One that is found empty later may have lost its votes.
    const { settings } = this.quorum
    const probation = member.wasMet ? probationOf({ maxTtl: settings.maxTtl }) : settings.probation
    this.quorum.ask<Identity>(
      at,
      (voter) => {
        const identity = voter.identify(probation, this.timeout)
        return identity instanceof Promise
          ? identity.then((answer) => this.met(at, answer))
          : this.met(at, identity)
      },
      () => {
        if (member.moved) return this.identify(at, true)
        member.asked = false
        this.pending--
        this.tell()
      },
      needed,
    )
  }

  private tell(): void {
    const waiting = this.waiting.splice(0)
    for (const one of waiting) {
      if (this.isEnough(one.everybody)) one.resolve(this.refusal ?? undefined)
      else this.waiting.push(one)
    }
  }

  /** The answer, or why it does not count. */
  private met(at: number, answer: Identity): Identity {
    const node = this.quorum.nodes[at] as Node
    const member = this.members[at] as Member
    if (answer.kind === 'unknown' || node.server !== null || member.moved) return answer
    const twin = this.quorum.nodes.find(({ server }) => server === answer.server)
    if (twin === undefined) {
      node.server = answer.server
      member.wasMet = true
      this.unknownNodes--
      return answer
    }
    // An address that moved may move back; those that were given so will not change.
    if (member.wasMet) {
      const leads = `it leads to the server of ${twin.label}, which would have two votes`
      return unknown(new Error(leads))
    }
    const message = `${twin.label} and ${node.label} are one server: it would have two votes, and take both away when it fails. Name each server once, and one database of it`
    this.refusal = unknownForGood(new InvalidArgumentError(message, { argument: 'stores', store: 'quorum' }))
    return answer
  }

  private moved(at: number, reachable: boolean): void {
    const node = this.quorum.nodes[at] as Node
    const member = this.members[at] as Member
    member.moved = true
    this.refusal = null
    if (node.server !== null) {
      node.server = null
      this.unknownNodes++
    }
    // Nobody has to wait for it later.
    if (reachable && this.wasSetUp) this.ask(at, true)
  }
}
