import type { Store } from '../../core/contract.ts'
import { StoreUnavailableError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'
import { linkTo } from '../redis/client.ts'
import { connectTo } from '../redis/drivers.ts'
import type { DriverName } from '../redis/drivers.ts'
import { storeOn } from '../redis/redis-store.ts'
import { checkLink } from '../redis/startup-checks.ts'
import { parseUrl } from '../redis/url.ts'
import { reasonOf } from './failure.ts'
import type { QuorumOptions } from './options.ts'
import { QuorumStore } from './store.ts'
import { parseRedlockUrl } from './url.ts'

export interface OpenRedlockOptions extends QuorumOptions {
  /** Which package to connect with. Default: `ioredis` if it is installed, else `redis`. */
  readonly driver?: DriverName
  /** What all keys and channels begin with. Default `hf`. */
  readonly prefix?: string
}

const REACH_MS = 5_000

/** Connects to the independent Redis servers behind a URL. Fails at once if fewer than a majority can be used. */
export async function openRedlockStore(url: string, given: OpenRedlockOptions = {}): Promise<Store> {
  const { driver, prefix, ...options } = given
  const address = parseRedlockUrl(url)
  const stores = await Promise.all(
    address.nodes.map(async (node) => {
      const link = linkTo(await connectTo(parseUrl(node.url), driver), true)
      return storeOn(link, prefix === undefined ? {} : { prefix })
    }),
  )
  const quorum = new QuorumStore(stores, { ...address.options, ...options })
  const problem = await quorum.reach()
  if (problem === undefined) return quorum
  await quorum.close()
  const { cause } = problem
  const message = `The quorum at ${redact(url)} cannot be used: ${reasonOf(cause)}`
  throw new StoreUnavailableError(message, { store: 'quorum', cause })
}

/** What an operator should know of a quorum and of each of its servers. */
export interface RedlockFinding {
  readonly level: 'ok' | 'info' | 'warning' | 'error'
  readonly code: string
  readonly message: string
  readonly hint?: string
}

export async function checkRedlock(
  url: string,
  { driver }: Pick<OpenRedlockOptions, 'driver'> = {},
): Promise<readonly RedlockFinding[]> {
  const { nodes, options } = parseRedlockUrl(url)
  const each = await Promise.all(
    nodes.map(({ url: at, label }) => checkNode(at, label, { driver, maxTtl: options.maxTtl ?? 30_000 })),
  )
  return [size(nodes.length), ...each.flat()]
}

interface CheckTerms {
  readonly driver: DriverName | undefined
  readonly maxTtl: number
}

async function checkNode(
  url: string,
  label: string,
  { driver, maxTtl }: CheckTerms,
): Promise<RedlockFinding[]> {
  const link = linkTo(await connectTo(parseUrl(url), driver), true)
  const store = storeOn(link, {})
  try {
    const node = await store.votes?.identify(maxTtl, REACH_MS / 5)
    if (node === undefined || node.kind === 'unknown') {
      const message = `${label} does not answer: ${reasonOf(node?.cause)}`
      return [{ level: 'warning', code: 'node', message, hint: 'The others decide without it.' }]
    }
    const findings = await checkLink(link)
    const state: RedlockFinding =
      node.readyIn === 0
        ? { level: 'ok', code: 'node', message: `${label} votes` }
        : {
            level: 'warning',
            code: 'node',
            message: `${label} came up empty, and votes in ${Math.ceil(node.readyIn / 1000)} s`,
            hint: 'Only for a quorum that never held a lock: ?setup=now.',
          }
    const worse = findings.filter(({ level }) => level === 'warning' || level === 'error')
    return [state, ...worse.map((finding) => ({ ...finding, message: `${label}: ${finding.message}` }))]
  } finally {
    await store.close()
  }
}

function size(count: number): RedlockFinding {
  const spare = count - (Math.floor(count / 2) + 1)
  const message = `${count} servers: ${spare} may fail`
  if (count % 2 === 1) return { level: 'ok', code: 'quorum', message }
  return { level: 'warning', code: 'quorum', message, hint: `${count - 1} would do as well.` }
}
