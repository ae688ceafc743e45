import type { Store } from '../../core/contract.ts'
import { UnsupportedError } from '../../core/errors.ts'
import { driverFor } from '../redis/client/index.ts'
import { connectTo } from '../redis/client/of-url.ts'
import type { DriverName } from '../redis/client/of-url.ts'
import { settingsOf } from '../redis/durable.ts'
import type { Driver } from '../redis/client/driver.ts'
import { storeOrNothing } from '../redis/open.ts'
import { LocalWrites } from '../redis/role.ts'
import { checkDriver } from '../redis/startup-checks.ts'
import { parseUrl } from '../redis/url.ts'
import { StartedFromSnapshot } from '../redis/votes/unused.ts'
import { systemClock } from './clock.ts'
import { reasonOf } from './failure.ts'
import { leastTimeoutOf, probationOf } from './options.ts'
import { setUp } from './set-up.ts'
import { parseRedlockUrl } from './url.ts'

// Taken once: a user's fake timers must not reach locks.
const { performance } = globalThis

export interface RedlockFinding {
  readonly level: 'ok' | 'info' | 'warning' | 'error'
  readonly code: string
  readonly message: string
  readonly hint?: string
}

/** How long a server may take to say whether it votes. */
const ANSWER_MS = 1_000
const LOOKS = 3

/** What an operator should know of a quorum and of each of its servers. */
export async function checkRedlock(
  url: string,
  { driver }: { readonly driver?: DriverName } = {},
): Promise<readonly RedlockFinding[]> {
  const { nodes, options } = parseRedlockUrl(url)
  const probation = probationOf(options)
  const members = await Promise.all(nodes.map((node) => member(node, driver)))
  try {
    const voters = members.flatMap(({ store }) => store.votes ?? [])
    // As whoever takes the first lock would: to look at a new server must not make it wait.
    await setUp(voters, { probation, timeout: ANSWER_MS, setTimer: systemClock.setTimer })
    const terms = { probation, nodeTimeout: leastTimeoutOf(options) }
    const each = await Promise.all(members.map((one) => checkNode(one, terms)))
    return [
      quorum(each.map(({ readyIn }) => readyIn)),
      ...(probation === 0 ? [atOnce] : []),
      ...each.flatMap(({ findings }) => findings),
    ]
  } finally {
    await Promise.all(members.map(async ({ store }) => store.close()))
  }
}

interface Member {
  readonly label: string
  readonly own: Driver
  readonly store: Store
}

async function member(
  { url, label }: { readonly url: string; readonly label: string },
  driver: DriverName | undefined,
): Promise<Member> {
  const at = parseUrl(url)
  const { driver: named, ...settings } = at.options
  const own = driverFor(await connectTo(at, driver ?? named), true)
  return { label, own, store: await storeOrNothing(own, settings) }
}

const atOnce: RedlockFinding = {
  level: 'warning',
  code: 'setup',
  message: 'setup=now: a server that lost its memory votes at once, and can give a lock away that is held',
  hint: 'Right when a quorum is set up; leave it out from then on.',
}

interface Checked {
  /** Milliseconds until it votes; nothing if that is not known. */
  readonly readyIn: number | undefined
  readonly findings: readonly RedlockFinding[]
}

interface Terms {
  readonly probation: number
  /** How long its vote is waited for. */
  readonly nodeTimeout: number
}

export async function checkNode(
  { label, own, store }: Member,
  { probation, nodeTimeout }: Terms,
): Promise<Checked> {
  try {
    const node = await store.votes?.identify(probation, ANSWER_MS)
    if (node === undefined || node.kind === 'unknown') return gone(label, node?.cause)
    const { readyIn } = node
    const refusal = await store.votes?.probe?.(ANSWER_MS)
    if (refusal !== undefined) return takesNone(label, refusal.cause)
    const roundTrip = await roundTripTo(own)
    if (roundTrip >= nodeTimeout) return tooFar(label, roundTrip, nodeTimeout)
    const settings = await settingsThatMatter(own)
    const said = settings.map((finding) => ({ ...finding, message: `${label}: ${finding.message}` }))
    return { readyIn, findings: [vote(label, readyIn), ...said] }
  } catch (cause) {
    // It answered once and then no more, or does not let us look.
    return gone(label, cause)
  }
}

function gone(label: string, cause: unknown): Checked {
  const code =
    cause instanceof LocalWrites ? 'role' : cause instanceof UnsupportedError ? 'eviction' : undefined
  if (code !== undefined) {
    const message = `${label} cannot vote: ${reasonOf(cause)}`
    return { readyIn: undefined, findings: [{ level: 'error', code, message }] }
  }
  const does = cause instanceof StartedFromSnapshot ? 'does not vote yet' : 'does not answer'
  const message = `${label} ${does}: ${reasonOf(cause)}`
  return { readyIn: undefined, findings: [{ level: 'warning', code: 'node', message }] }
}

/** The shortest of some: this machine may be busy just then. */
async function roundTripTo(own: Driver): Promise<number> {
  const [node] = await own.primaries()
  let shortest = Infinity
  for (let look = 0; look < LOOKS; look++) {
    const began = performance.now()
    await node?.send(['time'])
    shortest = Math.min(shortest, performance.now() - began)
  }
  return shortest
}

function tooFar(label: string, roundTrip: number, nodeTimeout: number): Checked {
  const message = `${label} is too far away: it answers after ${Math.ceil(roundTrip)} ms, and its vote is waited for ${nodeTimeout} ms`
  const hint = `Set nodeTimeout to several round trips: ?nodeTimeout=${Math.ceil(roundTrip / 25) * 100}`
  return { readyIn: undefined, findings: [{ level: 'warning', code: 'node', message, hint }] }
}

function takesNone(label: string, cause: unknown): Checked {
  const message = `${label} takes no new votes: ${reasonOf(cause)}`
  return { readyIn: undefined, findings: [{ level: 'error', code: 'writes', message }] }
}

function vote(label: string, readyIn: number): RedlockFinding {
  if (readyIn === 0) return { level: 'ok', code: 'node', message: `${label} votes` }
  const message = `${label} came up empty, and votes in ${seconds(readyIn)}`
  const hint = 'Until then it could give a lock away that it forgot.'
  return { level: 'warning', code: 'node', message, hint }
}

/** What makes a server a bad member. What it keeps on disk matters in another way than to a server that is alone. */
async function settingsThatMatter(own: Driver): Promise<readonly RedlockFinding[]> {
  const alone = await checkDriver(own)
  const bad = alone.filter(
    ({ level, code }) => (level === 'warning' || level === 'error') && code !== 'persistence',
  )
  return [...bad, ...(await persistence(own))]
}

/** A server that comes back with nothing, or with a snapshot, looks on first. */
async function persistence(own: Driver): Promise<readonly RedlockFinding[]> {
  const [node] = await own.primaries()
  if (node === undefined) return []
  // Managed services forbid CONFIG.
  const settings = await settingsOf(node, ['appendonly', 'save']).catch(() => undefined)
  if (settings?.get('appendonly') !== 'no' || settings.get('save') === '') return []
  const message =
    'keeps only snapshots on disk: after a restart it looks on first, for it may come back with an old state'
  const hint =
    'Set appendonly to yes, and appendfsync to always: then it votes at once after the restarts that follow, and forgets nothing.'
  return [{ level: 'warning', code: 'persistence', message, hint }]
}

/** Whether a lock can be had, and how many servers may fail until none can. */
export function quorum(readyIn: readonly (number | undefined)[]): RedlockFinding {
  const count = readyIn.length
  const majority = Math.floor(count / 2) + 1
  const voting = readyIn.filter((ms) => ms === 0).length
  const spare = voting - majority
  if (spare < 0) {
    const message = `only ${voting} of ${count} servers can vote, and ${majority} have to agree: nobody gets a lock`
    const soon = readyIn.filter((ms) => ms !== undefined).sort((a, b) => a - b)[majority - 1]
    const hint =
      soon === undefined
        ? undefined
        : `They can in ${seconds(soon)}. Where no lock was ever held, ?setup=now lets them vote at once.`
    return { level: 'error', code: 'quorum', message, ...(hint === undefined ? {} : { hint }) }
  }
  const who = voting === count ? `${count} servers` : `${voting} of ${count} servers vote`
  const message = `${who}: ${spare === 0 ? 'none' : spare} ${voting === count ? '' : 'more '}may fail`
  const even =
    count % 2 === 0
      ? { hint: `${count === 2 ? 'One server' : `${count - 1} servers`} would stand as many failures.` }
      : {}
  const level = voting === count && count % 2 === 1 ? 'ok' : 'warning'
  return { level, code: 'quorum', message, ...even }
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`
}
