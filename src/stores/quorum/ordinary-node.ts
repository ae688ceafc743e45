import type {
  ClaimRef,
  ConfirmAnswer,
  ExtendAnswer,
  ExtendRequest,
  Free,
  ListPage,
  ListQuery,
  MaybePromise,
  RenewAnswer,
  ReleaseAnswer,
  Store,
  StoreListener,
  Unknown,
  VoteAnswer,
  VoteInfo,
  Voter,
  VoteRef,
  VoteRelease,
  VoteRequest,
  Watch,
} from '../../core/contract.ts'
import { isUnknown } from '../../core/unknown.ts'

const WATCHING: Watch = { kind: 'watching', stop: () => undefined }

/**
 * A store without votes as a member of a quorum: each attempt is a claim of its own there. It cannot be asked to accept
 * another store's token, nor know a holder that was overtaken, so the tokens of such a quorum are only likely to grow.
 */
export class OrdinaryNode implements Voter {
  private readonly store: Store
  private readonly label: string

  constructor(store: Store, label: string) {
    this.store = store
    this.label = label
  }

  vote(request: VoteRequest, timeout: number): MaybePromise<VoteAnswer> {
    const { name, ttl, tokens, owner } = request
    const terms = { weight: 1, capacity: 1, ttl, patience: ttl, tokens, whenBusy: 'try', owner } as const
    return then(this.store.claim({ name, id: idOf(request), ...terms }, timeout), (answer): VoteAnswer => {
      if (answer.kind === 'held') return { ...answer, kind: 'granted' }
      return answer.kind === 'busy' || answer.kind === 'unknown' ? answer : { kind: 'busy' }
    })
  }

  confirm(): ConfirmAnswer {
    return { kind: 'confirmed' }
  }

  extend(requests: readonly ExtendRequest[], timeout: number): MaybePromise<readonly ExtendAnswer[]> {
    const renewals = requests.map((request) => {
      const { name, ttl, tokens } = request
      return { name, id: idOf(request), ttl, patience: ttl, tokens }
    })
    return then(this.store.renew(renewals, timeout), (answers) => answers.map(extended))
  }

  release(ref: VoteRelease, _tell: boolean, timeout: number): MaybePromise<ReleaseAnswer> {
    if (ref.attempt === 0) return this.releaseAny(ref, timeout)
    const released = this.store.release(
      { name: ref.name, id: idOf(ref), uncontended: ref.uncontended === true },
      undefined,
      timeout,
    )
    return then(released, (result) => result.released)
  }

  /** A late copy is of the attempt that is there, or of one before it that was given back long ago. */
  async withdraw(ref: ClaimRef, timeout: number): Promise<ReleaseAnswer> {
    const held = await this.inspect(ref.name, timeout / 2)
    if (isUnknown(held)) return held
    const id = 'kind' in held || held.id !== ref.id ? ref.id : idOf(held)
    return this.store.withdraw({ name: ref.name, id }, timeout / 2)
  }

  watch(_session: string, _listener: StoreListener): Watch {
    return WATCHING
  }

  async inspect(name: string, timeout: number): Promise<VoteInfo | Free | Unknown> {
    const info = await this.store.inspect(name, timeout)
    if ('kind' in info) return info
    const [holder] = info.holders
    if (holder === undefined) return { kind: 'free' }
    const [id = '', attempt] = holder.id.split('~')
    const { owner, token = 0n, expiresIn } = holder
    return { name, id, attempt: Number(attempt ?? 0), owner, token, expiresIn }
  }

  names(query: ListQuery, timeout: number): MaybePromise<ListPage | Unknown> {
    return this.store.list(query, timeout)
  }

  identify(): { kind: 'node'; server: string; readyIn: number } {
    return { kind: 'node', server: this.label, readyIn: 0 }
  }

  private async releaseAny(ref: VoteRef, timeout: number): Promise<ReleaseAnswer> {
    const held = await this.inspect(ref.name, timeout / 2)
    if (isUnknown(held)) return held
    if ('kind' in held || held.id !== ref.id) return { kind: 'not-held' }
    return this.release(held, true, timeout / 2)
  }
}

function idOf({ id, attempt }: VoteRef): string {
  return `${id}~${attempt}`
}

function extended(answer: RenewAnswer): ExtendAnswer {
  if (answer.kind === 'held') return { ...answer, kind: 'granted' }
  return answer.kind === 'queued' ? { kind: 'lost' } : answer
}

function then<T, R>(value: MaybePromise<T>, read: (value: T) => R): MaybePromise<R> {
  return value instanceof Promise ? value.then(read) : read(value)
}
