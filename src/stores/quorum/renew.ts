import type {
  ExtendAnswer,
  ExtendRequest,
  Lost,
  MaybePromise,
  RenewAnswer,
  RenewRequest,
  Unknown,
} from '../../core/contract.ts'
import { isUnknown, unknown } from '../../core/unknown.ts'
import { Agreement } from './agreement.ts'
import { noQuorum, stateOf } from './failure.ts'
import type { Grant, Grants } from './grants.ts'
import { inspect } from './inspect.ts'
import type { Quorum } from './quorum.ts'

const LOST: Lost = { kind: 'lost' }
const ELSEWHERE = unknown(
  new Error('the claim was granted to another client of the quorum, and only that can renew it'),
)
const NO_ANSWER: Unknown = unknown(new Error('the store gave too few answers'))

/** Renews many claims with one request to each store. Each is decided by itself, when its own majority is certain. */
export function renewAll(
  quorum: Quorum,
  grants: Grants,
  requests: readonly RenewRequest[],
  timeout: number,
): MaybePromise<readonly RenewAnswer[]> {
  const answers: RenewAnswer[] = requests.map(() => LOST)
  const keeping: Keeping[] = []
  let resolve: ((answers: readonly RenewAnswer[]) => void) | null = null
  let open = 0
  requests.forEach((request, index) => {
    const grant = grants.get(request.id)
    open++
    const decided = (answer: RenewAnswer): void => {
      answers[index] = answer
      if (answer.kind === 'lost' && grant !== undefined && grants.get(request.id) === grant)
        grants.lose(request.id)
      if (--open === 0) resolve?.(answers)
    }
    if (grant === undefined) return void renewForeign(quorum, request, timeout).then(decided)
    keeping.push(new Keeping(quorum, grant, { grants, request, timeout: timeout / 2 }, decided))
  })
  if (keeping.length > 0) {
    const extend = keeping.map((one) => one.extension('keep'))
    quorum.askAllKnown<Answers>(
      (voter) => wrap(voter.extend(extend, timeout / 2), extend.length),
      (given, at) => keeping.forEach((one, i) => one.heard(pick(given, i), at)),
    )
  }
  return open === 0 ? answers : new Promise((settle) => (resolve = settle))
}

/** Granted to another client, perhaps, or before this one began: only who has its attempt may say that it is lost. */
async function renewForeign(
  quorum: Quorum,
  { name, id }: RenewRequest,
  timeout: number,
): Promise<Lost | Unknown> {
  const found = await inspect(quorum, name, timeout)
  if (isUnknown(found)) return found
  return found.holders.some((holder) => holder.id === id) ? ELSEWHERE : LOST
}

type Answers = { readonly kind: 'all'; readonly all: readonly ExtendAnswer[] } | Unknown

/** A store that answered all with `unknown` has not answered; nor has one that left some out, for nobody can say whose the others are. */
function wrap(given: MaybePromise<readonly ExtendAnswer[]>, count: number): MaybePromise<Answers> {
  if (given instanceof Promise) return given.then((all) => wrapped(all, count))
  return wrapped(given, count)
}

function wrapped(all: readonly ExtendAnswer[], count: number): Answers {
  if (all.length !== count) return NO_ANSWER
  const [first] = all
  return first?.kind === 'unknown' && all.every(({ kind }) => kind === 'unknown')
    ? first
    : { kind: 'all', all }
}

function pick(given: Answers, index: number): ExtendAnswer {
  return given.kind === 'unknown' ? given : (given.all[index] ?? NO_ANSWER)
}

/** How one claim is kept. */
class Keeping {
  private readonly quorum: Quorum
  private readonly grants: Grants
  private readonly grant: Grant
  private readonly request: RenewRequest
  private readonly timeout: number
  private readonly decided: (answer: RenewAnswer) => void
  private readonly agreement: Agreement | null
  private readonly answers: (ExtendAnswer | undefined)[] = []
  private pending: number
  private kept = 0
  private gone = 0
  private free: number[] = []
  private restoring = false
  private contended = false
  private settled = false
  private lasting = false
  private blockless = false

  constructor(
    quorum: Quorum,
    grant: Grant,
    { grants, request, timeout }: { grants: Grants; request: RenewRequest; timeout: number },
    decided: (answer: RenewAnswer) => void,
  ) {
    this.quorum = quorum
    this.grants = grants
    this.grant = grant
    this.request = request
    this.timeout = timeout
    this.decided = decided
    this.pending = quorum.nodes.length
    const terms = { ref: grant, count: request.tokens, base: topOf(grant), timeout }
    this.agreement =
      request.tokens === 0 ? null : new Agreement(quorum, terms, (token) => this.newBlock(token))
  }

  extension(mode: ExtendRequest['mode']): ExtendRequest {
    const { name, id, attempt, owner, token } = this.grant
    const { ttl, tokens } = this.request
    const { probation } = this.quorum.settings
    return { name, id, attempt, owner, ttl, probation, token, top: topOf(this.grant), tokens, mode }
  }

  heard(answer: ExtendAnswer, at: number): void {
    this.pending--
    this.answers[at] = answer
    switch (answer.kind) {
      case 'granted':
      case 'renewed':
        this.kept++
        this.contended ||= answer.contended
        if (answer.kind === 'granted') this.agreement?.propose(at, answer.token)
        else this.agreement?.decline()
        break
      case 'free':
        // A store that was away, or lost the lease: it may hold it again, if the claim is still ours elsewhere.
        if (this.settled) this.restore([at])
        else this.free.push(at)
        break
      case 'fenced':
      case 'lost':
      case 'not-ready':
        this.gone++
        this.agreement?.decline()
        break
      case 'unknown':
        this.agreement?.decline()
    }
    this.decide()
  }

  private decide(): void {
    if (this.settled) return
    const { majority, nodes } = this.quorum
    if (this.agreement === null && this.kept >= majority) return this.renewed()
    if (this.gone > nodes.length - majority) return this.finish(LOST)
    if (this.pending > 0) return
    const free = this.free.splice(0)
    if (!this.restoring && this.kept > 0 && this.kept + free.length >= majority && free.length > 0) {
      this.restoring = true
      this.pending = free.length
      return this.restore(free)
    }
    if (this.agreement !== null) {
      for (const _ of free) this.agreement.decline()
      // The stores are still being asked to agree on a block.
      if (this.kept >= majority) return this.blockless ? this.renewed() : undefined
    }
    this.finish(this.unsure() ? this.noAnswer() : LOST)
  }

  /** Whether the stores that did not answer could make it a majority. */
  private unsure(): boolean {
    const silent = this.answers.filter((given) => given?.kind === 'unknown').length
    return this.kept + silent >= this.quorum.majority
  }

  private noAnswer(): Unknown {
    const { nodes, majority } = this.quorum
    return noQuorum(
      nodes.map(({ label }, at) => stateOf(label, this.answers[at])),
      majority,
    )
  }

  private newBlock(token: bigint | null): void {
    if (this.settled) return
    const { grant, request } = this
    // The time was extended, even if no block was agreed on: whoever needs one asks again.
    if (token === null) {
      this.blockless = true
      if (this.kept >= this.quorum.majority) this.renewed()
      return
    }
    grant.token = token
    grant.count = request.tokens
    this.keep()
    this.finish({ kind: 'held', token, count: request.tokens, contended: this.contended })
  }

  private renewed(): void {
    this.keep()
    this.finish({ kind: 'renewed', contended: this.contended })
  }

  private keep(): void {
    this.grant.endsAt = this.grants.endOf(this.request.ttl)
    this.lasting = true
  }

  private finish(answer: RenewAnswer): void {
    this.settled = true
    this.restore(this.free.splice(0))
    this.decided(answer)
  }

  /**
   * Before the outcome is certain these answers count; afterwards nobody waits for them. What was released or withdrawn
   * meanwhile is not to come back: the store may have heard of that already.
   */
  private restore(at: readonly number[]): void {
    const late = this.settled
    if (late && !(this.lasting && this.isOurs)) return
    const request = late ? { ...this.extension('restore'), tokens: 0 } : this.extension('restore')
    for (const node of at) {
      if (!this.isOurs) {
        this.heard(LOST, node)
        continue
      }
      this.quorum.askKnown<Answers>(
        node,
        (voter) => wrap(voter.extend([request], this.timeout), 1),
        (given) => {
          // A server that had to be told the script was asked a second time, maybe after the release.
          if (!this.isOurs) this.giveBack(node)
          if (!late) this.heard(notFree(pick(given, 0)), node)
        },
      )
    }
  }

  private get isOurs(): boolean {
    return this.grants.get(this.grant.id) === this.grant
  }

  private giveBack(at: number): void {
    const { name, id, attempt } = this.grant
    const { timeout } = this
    this.quorum.ask(
      at,
      (voter) => voter.release({ name, id, attempt }, true, timeout),
      () => {},
      true,
    )
  }
}

function notFree(answer: ExtendAnswer): ExtendAnswer {
  return answer.kind === 'free' ? LOST : answer
}

function topOf({ token, count }: Grant): bigint {
  return token + BigInt(count) - 1n
}
