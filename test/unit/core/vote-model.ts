import type { ConfirmRequest, ExtendRequest, VoteRequest } from '../../../src/core/contract.ts'
import * as rule from '../../../src/core/vote-cell.ts'
import type { CellAnswer, CellHolder, VoteCell } from '../../../src/core/vote-cell.ts'

/**
 * All that can happen between two clients and three stores, in every order. The network is as bad as it can be: every
 * message may be as late as it likes, votes may arrive twice, a client may look at any majority of the answers, and a
 * lease may end at any moment, as if no two clocks agreed on anything.
 */

export interface Rules {
  readonly vote: (cell: VoteCell, request: VoteRequest) => CellAnswer
  readonly confirm: (cell: VoteCell, request: ConfirmRequest) => CellAnswer
  readonly extend: (cell: VoteCell, request: ExtendRequest) => CellAnswer
  /** What a majority's answers make of it: the token, and whether stores that proposed less have to accept it. */
  readonly choose: (proposals: readonly number[]) => { token: number; writeBack: boolean }
  /** One store may lose its memory once, and go on as if nothing had happened. */
  readonly amnesia: boolean
}

export interface Story {
  /** How many tokens each client asks for. */
  readonly counts: readonly [number, number]
  /** How many votes of the first client may arrive twice. */
  readonly twice: number
  /** Begin when two stores have granted it to the first client, which holds it, and its third vote is still under way. */
  readonly held?: boolean
  /** Whether the first client renews once: not at all, its time only, or with so many new tokens. */
  readonly renews: false | { readonly tokens: number }
}

const NOW = { ms: 0, micros: 0 }
const STORES = 3
const MAJORITY = 2
const NEVER = 1e9

export const realRules: Rules = {
  vote: (cell, request) => rule.vote(cell, request, NOW, []),
  confirm: (cell, request) => rule.confirm(cell, request, NOW),
  extend: (cell, request) => rule.extend(cell, request, NOW),
  choose: (proposals) => ({ token: Math.max(...proposals), writeBack: true }),
  amnesia: false,
}

type Phase = 'out' | 'voting' | 'confirming' | 'held' | 'renewing' | 'confirming more' | 'over'

/** What one client has to do with one store. */
interface Dealing {
  /** Whether the vote arrived, and once more; what it said: a token, or 0 for no. */
  voted: number
  proposal: number
  /** A write-back is under way, or the store has accepted. */
  confirm: 'none' | 'sent' | 'accepted'
  /** The renewal's message is under way, or what came of it: a token, -1 without, 0 for no. */
  renewal: 'none' | 'sent' | 'done'
  renewed: number
}

interface Client {
  phase: Phase
  dealings: Dealing[]
  token: number
  /** The last token of the highest block that was complete when this one began. */
  after: number
  /** The first and the last token that are its own. */
  first: number
  top: number
  /** Begun when somebody else had been granted the name after it. */
  overtaken: boolean
}

interface World {
  cells: VoteCell[]
  clients: [Client, Client]
  forgot: boolean
}

export interface Exploration {
  readonly states: number
  /** How it went wrong, step by step. */
  readonly violation?: { readonly what: string; readonly steps: readonly string[] }
}

export function explore(story: Story, rules: Rules, most = 1_000_000): Exploration {
  const start: World = {
    cells: Array.from({ length: STORES }, () => rule.emptyCell()),
    clients: [newClient(), newClient()],
    forgot: !rules.amnesia,
  }
  if (story.held === true) grantFirst(start, story, rules)
  const seen = new Set([keyOf(start)])
  interface Path {
    readonly step: string
    readonly before: Path | null
  }
  let layer: [World, Path][] = [[start, { step: 'begin', before: null }]]
  while (layer.length > 0) {
    const next: [World, Path][] = []
    for (const [from, path] of layer) {
      for (const [step, world, what] of successors(from, story, rules)) {
        if (what !== undefined) {
          const steps = [step]
          for (let at: Path | null = path; at !== null; at = at.before) steps.unshift(at.step)
          return { states: seen.size, violation: { what, steps } }
        }
        const key = keyOf(world)
        if (seen.has(key)) continue
        seen.add(key)
        if (seen.size > most) throw new Error(`more than ${most} states`)
        next.push([world, { step, before: path }])
      }
    }
    layer = next
  }
  return { states: seen.size }
}

function grantFirst(world: World, { counts: [count] }: Story, rules: Rules): void {
  const [client] = world.clients
  for (const at of [0, 1]) {
    rules.vote(world.cells[at] as VoteCell, voteOf(0, count))
    ;(client.dealings[at] as Dealing).voted = 1
  }
  Object.assign(client, { phase: 'held', first: 1, top: count })
}

type Successor = [step: string, world: World, violation?: string | undefined]

function* successors(world: World, story: Story, rules: Rules): Generator<Successor> {
  for (const who of [0, 1] as const) yield* steps(world, who, story, rules)
  for (let at = 0; at < STORES; at++) {
    if (world.cells[at]?.holder !== null) {
      const after = copy(world)
      ;(after.cells[at] as VoteCell).holder = null
      yield [`store ${at}: the lease ends`, after]
    }
    if (!world.forgot) {
      const after = copy(world)
      after.cells[at] = rule.emptyCell()
      after.forgot = true
      yield [`store ${at}: loses its memory`, after]
    }
  }
}

function* steps(world: World, who: 0 | 1, story: Story, rules: Rules): Generator<Successor> {
  const client = world.clients[who]
  const count = story.counts[who]
  if (client.phase === 'out') {
    const after = copy(world)
    const mine = after.clients[who]
    mine.phase = 'voting'
    mine.after = completed(world)
    yield [`client ${who}: begins`, after]
    return
  }
  const repeated = client.dealings.filter(({ voted }) => voted === 2).length
  for (let at = 0; at < STORES; at++) {
    const { voted, confirm, renewal } = client.dealings[at] as Dealing
    if (voted === 0 || (voted === 1 && who === 0 && repeated < story.twice))
      yield vote(world, who, at, story, rules)
    if (confirm === 'sent') yield confirmAt(world, who, at, story, rules)
    if (renewal === 'sent') yield renewAt(world, who, at, story, rules)
  }
  if (client.phase === 'voting') {
    yield* decisions(world, who, (dealing) => dealing.proposal, { count, rules, more: false })
  }
  if (client.phase === 'held' && story.renews !== false && who === 0) {
    const after = copy(world)
    const mine = after.clients[who]
    mine.phase = 'renewing'
    mine.overtaken = after.clients[1].first > mine.top
    for (const dealing of mine.dealings)
      Object.assign(dealing, { renewal: 'sent', confirm: 'none', renewed: 0 })
    yield [`client ${who}: begins to renew`, after]
  }
  if (client.phase === 'renewing' && story.renews !== false) {
    const { tokens } = story.renews
    if (tokens > 0) {
      yield* decisions(world, who, ({ renewed }) => renewed, { count: tokens, rules, more: true })
    } else if (client.dealings.filter(({ renewed }) => renewed !== 0).length >= MAJORITY) {
      const after = copy(world)
      after.clients[who].phase = 'over'
      yield [`client ${who}: has renewed`, after, client.overtaken ? OVERTAKEN : undefined]
    }
  }
}

const OVERTAKEN = 'a holder that was overtaken could renew'

function vote(world: World, who: 0 | 1, at: number, story: Story, rules: Rules): Successor {
  const after = copy(world)
  const dealing = after.clients[who].dealings[at] as Dealing
  const answer = rules.vote(after.cells[at] as VoteCell, voteOf(who, story.counts[who]))
  dealing.voted++
  const counts = dealing.voted === 1 && after.clients[who].phase === 'voting'
  if (counts && answer.kind === 'granted') dealing.proposal = answer.token
  return [`store ${at}: ${answer.kind} to client ${who}`, after]
}

interface Choice {
  readonly count: number
  readonly rules: Rules
  readonly more: boolean
}

/** The client may look at any majority of the proposals. */
function* decisions(
  world: World,
  who: 0 | 1,
  proposalOf: (dealing: Dealing) => number,
  { count, rules, more }: Choice,
): Generator<Successor> {
  const { dealings } = world.clients[who]
  const given = dealings.flatMap((dealing, at) => (proposalOf(dealing) > 0 ? [at] : []))
  for (const chosen of subsets(given)) {
    if (chosen.length < MAJORITY) continue
    const after = copy(world)
    const mine = after.clients[who]
    const { token, writeBack } = rules.choose(chosen.map((at) => proposalOf(dealings[at] as Dealing)))
    mine.token = token
    mine.phase = more ? 'confirming more' : 'confirming'
    // What has been decided on makes no difference any more: fewer states to tell apart.
    for (const dealing of mine.dealings) Object.assign(dealing, { proposal: 0, renewed: 0 })
    for (const at of chosen) {
      const accepted = !writeBack || proposalOf(dealings[at] as Dealing) === token
      ;(mine.dealings[at] as Dealing).confirm = accepted ? 'accepted' : 'sent'
    }
    yield [
      `client ${who}: goes for ${token} with ${chosen.join(' and ')}`,
      after,
      complete(after, who, count),
    ]
  }
}

function confirmAt(world: World, who: 0 | 1, at: number, story: Story, rules: Rules): Successor {
  const after = copy(world)
  const mine = after.clients[who]
  const more = mine.phase === 'confirming more'
  const count = more && story.renews !== false ? story.renews.tokens : story.counts[who]
  const { token } = mine
  const answer = rules.confirm(after.cells[at] as VoteCell, {
    ...refOf(who),
    base: BigInt(more ? mine.top : token),
    token: BigInt(token),
    count,
  })
  const dealing = mine.dealings[at] as Dealing
  dealing.confirm = answer.kind === 'confirmed' ? 'accepted' : 'none'
  return [`store ${at}: ${answer.kind} for client ${who}`, after, complete(after, who, count)]
}

function renewAt(world: World, who: 0 | 1, at: number, story: Story, rules: Rules): Successor {
  const after = copy(world)
  const mine = after.clients[who]
  const dealing = mine.dealings[at] as Dealing
  const answer = rules.extend(after.cells[at] as VoteCell, {
    ...refOf(who),
    ttl: NEVER,
    owner: '',
    probation: 0,
    token: BigInt(mine.first),
    top: BigInt(mine.top),
    tokens: story.renews === false ? 0 : story.renews.tokens,
    mode: 'restore',
  })
  dealing.renewal = 'done'
  if (answer.kind === 'granted') dealing.renewed = answer.token
  else dealing.renewed = answer.kind === 'renewed' ? -1 : 0
  return [`store ${at}: ${answer.kind} to the renewal of client ${who}`, after]
}

/** A majority has accepted: what must be true of the block. */
function complete(world: World, who: 0 | 1, count: number): string | undefined {
  const mine = world.clients[who]
  const other = world.clients[1 - who] as Client
  const more = mine.phase === 'confirming more'
  if (!more && mine.phase !== 'confirming') return undefined
  if (mine.dealings.filter(({ confirm }) => confirm === 'accepted').length < MAJORITY) return undefined
  const [first, last] = [mine.token, mine.token + count - 1]
  mine.phase = more ? 'over' : 'held'
  for (const dealing of mine.dealings) dealing.confirm = 'none'
  mine.token = 0
  if (more && mine.overtaken) return OVERTAKEN
  if (more && other.first > mine.top && first > other.top)
    return 'the older of two holders has the larger token'
  if (first <= mine.after) return 'a later grant has a smaller token'
  if (more && first <= mine.top) return 'a token was given twice to one client'
  const disjoint = other.first === 0 || last < other.first || first > other.top
  if (!disjoint) return 'a token was given to two clients'
  mine.top = last
  mine.first = more ? mine.first : first
  return undefined
}

const completed = ({ clients }: World): number => Math.max(...clients.map(({ top }) => top))
const refOf = (who: number): { name: string; id: string; attempt: number } => ({
  name: '',
  id: `client${who}.1`,
  attempt: 1,
})

const voteOf = (who: number, tokens: number): VoteRequest => ({
  ...refOf(who),
  tokens,
  ttl: NEVER,
  owner: '',
  probation: 0,
  interest: false,
})

function newClient(): Client {
  const dealings = Array.from({ length: STORES }, (): Dealing => ({
    voted: 0,
    proposal: 0,
    confirm: 'none',
    renewal: 'none',
    renewed: 0,
  }))
  return { phase: 'out', dealings, token: 0, after: 0, first: 0, top: 0, overtaken: false }
}

const NOTHING: VoteCell = rule.emptyCell()

function copy({ cells, clients: [one, two], forgot }: World): World {
  return {
    cells: cells.map(({ fence, holder }) => ({
      fence,
      holder: holder === null ? null : copyHolder(holder),
      interested: NOTHING.interested,
      withdrawn: NOTHING.withdrawn,
    })),
    clients: [copyClient(one), copyClient(two)],
    forgot,
  }
}

const copyHolder = (holder: CellHolder): CellHolder => ({ ...holder })
const copyClient = (client: Client): Client => ({
  ...client,
  dealings: client.dealings.map((dealing) => ({ ...dealing })),
})

/** Which store is which makes no difference. */
function keyOf({ cells, clients, forgot }: World): string {
  const stores = cells.map(({ fence, holder }, at) => {
    const held = holder === null ? '' : `${holder.id}/${holder.created}/${holder.token}`
    const dealt = clients.map(({ dealings }) => {
      const { voted, proposal, confirm, renewal, renewed } = dealings[at] as Dealing
      return `${voted}/${proposal}/${confirm}/${renewal}/${renewed}`
    })
    return `${fence} ${held} ${dealt.join(' ')}`
  })
  const heads = clients.map(
    ({ phase, token, after, first, top, overtaken }) =>
      `${phase}/${token}/${after}/${first}/${top}/${overtaken ? 1 : 0}`,
  )
  return `${heads.join(' ')} ${forgot ? 1 : 0}|${stores.sort().join('|')}`
}

function subsets(items: readonly number[]): number[][] {
  return items.reduce<number[][]>((all, item) => [...all, ...all.map((one) => [...one, item])], [[]])
}
