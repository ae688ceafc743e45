import type { Unknown } from '../../core/contract.ts'
import { isUnknown, unknown } from '../../core/unknown.ts'
import type { Random } from '../../testkit/random.ts'
import type { VirtualEnv } from '../../testkit/virtual-env.ts'
import type { Clocks } from './clocks.ts'
import type { FaultOf } from './fault.ts'
import type { ProcessEnv } from './process-env.ts'

/** A server of the simulated world: up or down, with clocks of its own. */
export interface Node {
  readonly index: number
  readonly clocks: Clocks
  up: boolean
}

interface Trouble {
  delay: { request: number; reply: number; event: number }
  readonly losses: { readonly what: string; readonly method: string; times: number }[]
  readonly duplicates: { readonly method: string; readonly later: number }[]
  /** Messages from a node that come twice: how much later each. */
  readonly echoes: number[]
  /** Nodes that cannot be reached, and how many partitions keep them apart. */
  readonly cut: Map<number, number>
}

export type LogLine = (who: string, what: string) => void

export interface Surroundings {
  readonly world: VirtualEnv
  readonly chance: Random
  readonly log: LogLine
}

const ANY = 'any'
/** Between two messages that must not change places. */
const GAP_MS = 0.001
const NO_DELAY = { request: 0, reply: 0, event: 0 }

/** The way of one process to the nodes, in the hands of the faults. */
export class Network {
  readonly name: string
  readonly env: ProcessEnv
  /** Every request, in true time; `lost`: it was given up. */
  readonly requests: { readonly from: number; to: number; lost: boolean }[] = []
  /** Requests that are neither answered nor given up. */
  underWay = 0
  private readonly world: VirtualEnv
  private readonly chance: Random
  private readonly log: LogLine
  /** When the last request arrives at the nodes, and the last reply here, where a connection keeps their order. */
  private readonly last = { there: 0, here: 0 }
  /** One connection, as TCP keeps it: nothing overtakes. Otherwise requests may come over several, in any order. */
  ordered = false
  private readonly trouble: Trouble = {
    delay: NO_DELAY,
    losses: [],
    duplicates: [],
    echoes: [],
    cut: new Map(),
  }
  /** Called when a node that was out of reach may be reached again. */
  private readonly onReconnect: ((node: number) => void)[] = []

  constructor(name: string, env: ProcessEnv, { world, chance, log }: Surroundings) {
    this.name = name
    this.env = env
    this.world = world
    this.chance = chance
    this.log = log
  }

  /** One request and its reply. Whatever is not answered within `timeout` of the process's time is unknown. */
  call<T>(node: Node, method: string, timeout: number, run: () => T): Promise<T | Unknown> {
    return new Promise((resolve) => {
      const giveUp = (): void => settle(unknown(new Error('no answer in time')))
      const timer = this.env.setTimer(giveUp, timeout, true)
      const request = { from: this.world.mono(), to: Infinity, lost: false }
      this.requests.push(request)
      let open = true
      this.underWay++
      const settle = (answer: T | Unknown): void => {
        if (!open) return
        open = false
        this.underWay--
        timer.cancel()
        request.to = this.world.mono()
        request.lost = isUnknown(answer)
        resolve(answer)
      }
      const deliver = (after: number): void => {
        this.later('there', after, () => {
          if (this.isCut(node)) return this.log(this.name, `${method} lost on its way`)
          if (!node.up) return this.answer(node, method, () => settle(unknown(new Error('refused'))))
          this.log(this.name, `${method} arrives`)
          const answer = run()
          this.answer(node, method, () => settle(answer))
        })
      }
      this.log(this.name, `${method} sent`)
      const after = this.travel('request')
      const copy = this.nextDuplicate(method)
      if (copy !== undefined) deliver(after + copy)
      if (this.loses('request', method)) return this.log(this.name, `${method} lost`)
      deliver(after)
    })
  }

  /** A message that nobody asked for, from a node to the process. */
  push(node: Node, what: string, callback: () => void): void {
    if (this.loses('event', what)) return this.log(this.name, `event ${what} lost`)
    const arrive = (): void => {
      if (this.isCut(node)) return this.log(this.name, `event ${what} lost on its way`)
      this.env.reach(() => {
        this.log(this.name, `event ${what}`)
        callback()
      })
    }
    const after = this.travel('event')
    const copy = this.trouble.echoes.shift()
    if (copy !== undefined) this.later('here', after + copy, arrive)
    this.later('here', after, arrive)
  }

  reconnected(callback: (node: number) => void): void {
    this.onReconnect.push(callback)
  }

  reachable(node: number): void {
    for (const callback of this.onReconnect) this.env.reach(() => callback(node))
  }

  slow({ request, reply, event }: FaultOf<'delay'>): void {
    this.trouble.delay = { request, reply, event }
  }

  quick(): void {
    this.trouble.delay = NO_DELAY
  }

  lose({ what, method, times }: FaultOf<'loss'>): void {
    this.trouble.losses.push({ what, method, times })
  }

  duplicate({ method, later }: FaultOf<'duplicate'>): void {
    this.trouble.duplicates.push({ method, later })
  }

  echo({ later }: FaultOf<'echo'>): void {
    this.trouble.echoes.push(later)
  }

  cut(node: number): void {
    const { cut } = this.trouble
    cut.set(node, (cut.get(node) ?? 0) + 1)
  }

  mend(node: number): void {
    const { cut } = this.trouble
    cut.set(node, Math.max(0, (cut.get(node) ?? 0) - 1))
    if (cut.get(node) === 0) this.reachable(node)
  }

  heal(): void {
    const { losses, duplicates, echoes } = this.trouble
    losses.length = 0
    duplicates.length = 0
    echoes.length = 0
  }

  private answer(node: Node, method: string, callback: () => void): void {
    if (this.loses('reply', method)) return this.log(this.name, `reply to ${method} lost`)
    this.later('here', this.travel('reply'), () => {
      if (this.isCut(node)) return this.log(this.name, `reply to ${method} lost on its way`)
      this.env.reach(() => {
        this.log(this.name, `reply to ${method}`)
        callback()
      })
    })
  }

  private later(where: 'there' | 'here', ms: number, callback: () => void): void {
    const now = this.world.mono()
    const at = this.ordered ? Math.max(now + ms, this.last[where] + GAP_MS) : now + ms
    this.last[where] = Math.max(at, this.last[where])
    this.world.setTimer(callback, at - now, true)
  }

  /** Mostly quick; under a delay anything between nothing and all of it, so that messages overtake each other. */
  private travel(what: 'request' | 'reply' | 'event'): number {
    const usual = 0.1 + this.chance.next()
    const most = this.trouble.delay[what]
    return most === 0 ? usual : usual + most * this.chance.next()
  }

  private isCut({ index }: Node): boolean {
    return (this.trouble.cut.get(index) ?? 0) > 0
  }

  private loses(what: 'request' | 'reply' | 'event', method: string): boolean {
    const found = this.trouble.losses.find(
      (each) => each.times > 0 && each.what === what && (each.method === method || each.method === ANY),
    )
    if (found !== undefined) found.times--
    return found !== undefined
  }

  private nextDuplicate(method: string): number | undefined {
    const { duplicates } = this.trouble
    const index = duplicates.findIndex((each) => each.method === method || each.method === ANY)
    return index === -1 ? undefined : duplicates.splice(index, 1)[0]?.later
  }
}
