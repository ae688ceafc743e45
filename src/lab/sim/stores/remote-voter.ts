import type { MaybePromise, StoreListener, Unknown, Voter, Watch } from '../../../core/contract.ts'
import type { Network, Node } from '../network.ts'

type Voted<M extends keyof Voter> = Awaited<ReturnType<Required<Voter>[M]>>

/** One voter of a quorum at the far end of a network. Requests are made anew for every call, and need no copy. */
export class RemoteVoter implements Voter {
  private readonly network: Network
  private readonly node: Node
  private readonly voter: Voter

  constructor(network: Network, node: Node, voter: Voter) {
    this.network = network
    this.node = node
    this.voter = voter
  }

  vote: Voter['vote'] = (request, timeout) => {
    const copy = { ...request }
    return this.call('claim', timeout, () => this.voter.vote(copy, timeout))
  }

  confirm: Voter['confirm'] = (request, timeout) => {
    const copy = { ...request }
    return this.call('confirm', timeout, () => this.voter.confirm(copy, timeout))
  }

  extend: Voter['extend'] = async (requests, timeout) => {
    const copies = requests.map((request) => ({ ...request }))
    const answers = await this.call<Voted<'extend'>>('renew', timeout, () =>
      this.voter.extend(copies, timeout),
    )
    return 'kind' in answers ? requests.map(() => answers) : answers
  }

  release: Voter['release'] = (ref, tell, timeout) => {
    const copy = { ...ref }
    return this.call('release', timeout, () => this.voter.release(copy, tell, timeout))
  }

  withdraw: Voter['withdraw'] = (ref, timeout) => {
    const copy = { ...ref }
    return this.call('withdraw', timeout, () => this.voter.withdraw(copy, timeout))
  }

  watch(session: string, listener: StoreListener, timeout: number): Promise<Watch | Unknown> {
    const { network, node } = this
    const told: StoreListener = (event) => network.push(node, event.kind, () => listener(event))
    return this.call('watch', timeout, () => this.voter.watch(session, told, timeout) as Watch)
  }

  inspect: Voter['inspect'] = (name, timeout) =>
    this.call('inspect', timeout, () => this.voter.inspect(name, timeout))

  names: Voter['names'] = (query, timeout) =>
    this.call('names', timeout, () => this.voter.names(query, timeout))

  identify: Voter['identify'] = (probation, timeout) =>
    this.call('identify', timeout, () => this.voter.identify(probation, timeout))

  // The voters of the simulation answer at once.
  private call<T>(method: string, timeout: number, run: () => MaybePromise<T>): Promise<T | Unknown> {
    return this.network.call(this.node, method, timeout, run as () => T)
  }
}
