import { checkOptions } from '../../core/arguments.ts'
import { InvalidArgumentError } from '../../core/errors.ts'
import type { Store } from '../../core/contract.ts'
import { checkAddress } from './client/servers.ts'
import { CREATOR_ACL, OPEN_ACL, parseConnectString } from './client/index.ts'
import type {
  Acl,
  AuthInfo,
  ConnectString,
  ServerAddress,
  ZooKeeper,
  ZooKeeperOptions,
} from './client/index.ts'
import { longestTtl } from './zk-session.ts'
import { ZooKeeperStore } from './store.ts'

export interface ZooKeeperStoreOptions {
  /** The directory of all locks. A Java process that uses Curator's locks below the same one shares them. Default `/holdfast`. */
  readonly root?: string | undefined
  /** Who may touch the nodes: anybody, whoever has the same credentials, or a list. Default `open`. */
  readonly acl?: 'open' | 'creator' | readonly Acl[] | undefined
  /** `maxSessionTimeout` of the servers: decides the longest ttl. Default 40,000, as theirs. */
  readonly maxSessionTimeout?: number | undefined
  /** A ttl for which a session is opened at once rather than with the first claim. Default: none; for a URL that of `open`. */
  readonly ttl?: number | undefined
  /** Called when another process asks, in Curator's way, that a lock held here be given up. Nothing is forced. */
  readonly onRevocation?: ((name: string) => void) | undefined
}

/** For a connect string or a list of servers: how to connect. */
export interface ConnectOptions extends ZooKeeperStoreOptions {
  readonly client?: Omit<ZooKeeperOptions, 'sessionTimeout' | 'background'> | undefined
}

const OPTIONS: readonly (keyof ConnectOptions)[] = [
  'root',
  'acl',
  'maxSessionTimeout',
  'ttl',
  'onRevocation',
  'client',
]
const SETTINGS = ['root', 'acl', 'ttl', 'maxSessionTimeout', 'auth']
const ESCAPES = 'must have the signs @ / ? # & % of credentials and paths as %40 %2F %3F %23 %26 %25'
const DEFAULT_ROOT = '/holdfast'
const MAX_SESSION_TIMEOUT = 40_000
/** That of locks for which nothing else is said. */
const DEFAULT_TTL = 15_000
const DIAL_MS = 1000

/** Locks at a ZooKeeper ensemble: `host1:2181,host2:2181/chroot`, a list of servers, or a client of your own. */
export function zookeeperStore(
  to: string | readonly ServerAddress[] | ZooKeeper,
  options: ConnectOptions = {},
): Store {
  checkOptions(options, OPTIONS, 'root')
  return makeStore(to, options)
}

function makeStore(
  to: string | readonly ServerAddress[] | ZooKeeper,
  { root = DEFAULT_ROOT, acl = 'open', ttl, onRevocation, ...options }: ConnectOptions,
): ZooKeeperStore {
  if (!/^(\/[^/]+)+$/.test(root)) {
    throw new InvalidArgumentError('root must be a path such as /locks', { argument: 'root' })
  }
  // Not by its class: another copy of the package may have made it.
  const own = typeof to === 'object' && 'getChildren' in to
  const source = own ? { client: to } : { ...addressesOf(to), options: options.client ?? {} }
  // A user's client may have negotiated less than it asked for by now, and never gets more.
  const limit = own ? to.sessionTimeout : MAX_SESSION_TIMEOUT
  return new ZooKeeperStore({
    source,
    root,
    acl: acl === 'open' ? OPEN_ACL : acl === 'creator' ? CREATOR_ACL : acl,
    maxSessionTimeout: options.maxSessionTimeout ?? limit,
    ttl,
    onRevocation,
  })
}

/**
 * `zookeeper://[user:password@]h1:2181,h2:2181/chroot?root=/locks&acl=creator&maxSessionTimeout=60000&auth=digest:user:password`;
 * `zookeepers://` for TLS. `usual`: the ttl that most locks will be taken with.
 */
export async function openZooKeeperStore(url: string, usual?: number): Promise<Store> {
  const match = /^zookeeper(s?):\/\/(?:([^@/]*)@)?([^/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/i.exec(url)
  if (match === null) throw refused('must look like zookeeper://host1:2181,host2:2181/chroot')
  const [, tls, userInfo, hosts, chroot = '', search] = match
  // A plus is a plus, as before the hosts: forms write a space so, connect strings do not.
  const query = new URLSearchParams(search?.replaceAll('+', '%2B'))
  const isOdd = [...query.keys()].some((key) => !SETTINGS.includes(key))
  // Credentials with signs that were not escaped end elsewhere than they should.
  const misplaced = userInfo === undefined && (chroot.includes('@') || (isOdd && url.includes('@')))
  if (hosts?.includes('@') === true || misplaced) throw refused(ESCAPES)
  if (isOdd) throw refused(`has a setting that is none of ${SETTINGS.join(', ')}`)
  const acl = query.get('acl') ?? 'open'
  if (acl !== 'open' && acl !== 'creator') throw refused('must have acl=open or acl=creator')
  const max = wholeNumber('maxSessionTimeout', query)
  const root = query.get('root')
  const store = makeStore(`${hosts}${decoded(chroot)}`, {
    acl,
    ttl: wholeNumber('ttl', query) ?? sessionFor(usual, max),
    ...(root !== null && { root }),
    ...(max !== undefined && { maxSessionTimeout: max }),
    client: { auth: credentials(userInfo, query.getAll('auth')), ...(tls !== '' && { tls: {} }) },
  })
  // So that the first acquire need not pay for the dial. Servers that are away now may be there when they are needed.
  await store.connected(DIAL_MS)
  return store
}

/** Read now, so that a mistake is told to whoever made it. */
function addressesOf(to: string | readonly ServerAddress[]): ConnectString {
  try {
    if (typeof to === 'string') return parseConnectString(to)
    to.forEach(checkAddress)
    return { servers: to, chroot: '' }
  } catch (cause) {
    throw new InvalidArgumentError((cause as Error).message, { argument: 'servers', cause })
  }
}

function credentials(userInfo: string | undefined, auth: readonly string[]): AuthInfo[] {
  const given = auth.map((text): AuthInfo => {
    const colon = text.indexOf(':')
    if (colon < 1) throw refused('must have auth=scheme:credentials')
    return { scheme: text.slice(0, colon), auth: text.slice(colon + 1) }
  })
  return userInfo === undefined ? given : [{ scheme: 'digest', auth: decoded(userInfo) }, ...given]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw refused(ESCAPES)
  }
}

/** Whoever takes locks with a ttl that is none, or too long, hears of it; no session is opened for that. */
function sessionFor(usual: number | undefined, maxSessionTimeout = MAX_SESSION_TIMEOUT): number {
  const fits = Number.isInteger(usual) && Number(usual) > 0 && Number(usual) <= longestTtl(maxSessionTimeout)
  return fits ? Number(usual) : DEFAULT_TTL
}

function wholeNumber(key: string, query: URLSearchParams): number | undefined {
  const text = query.get(key)
  if (text === null) return undefined
  if (!/^[1-9]\d{0,8}$/.test(text)) throw refused(`must have a whole number of milliseconds as ${key}`)
  return Number(text)
}

/** Never shows the URL: it may hold a password. */
function refused(problem: string): InvalidArgumentError {
  return new InvalidArgumentError(`A ZooKeeper URL ${problem}`, { argument: 'url' })
}
