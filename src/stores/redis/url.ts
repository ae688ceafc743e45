import { InvalidArgumentError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'

export interface Host {
  readonly host: string
  readonly port: number
}

/** What a URL says, for every driver alike. */
export interface RedisAddress {
  readonly kind: 'server' | 'sentinel' | 'cluster'
  readonly tls: boolean
  /** One server; all sentinels; some nodes of a cluster. */
  readonly hosts: readonly [Host, ...Host[]]
  readonly user?: string
  readonly password?: string
  readonly database: number
  /** What the sentinels call the primary. */
  readonly master?: string
  /** What the sentinels want to hear, which have users of their own. */
  readonly sentinelLogin?: { readonly username?: string; readonly password: string }
  readonly options: UrlOptions
}

/** Options of the store that a URL can say. */
export interface UrlOptions {
  readonly driver?: 'ioredis' | 'redis'
  readonly prefix?: string
  readonly fencing?: 'hybrid' | 'durable'
  readonly replicas?: number
  readonly replicaTimeout?: number
}

const SHAPE =
  /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^@/?#]*)@)?([^@/?#]+)((?:\/[^?#]*)?)(?:\?([^#]*))?$/i
const PORTS = { server: 6379, sentinel: 26_379, cluster: 6379 }

/**
 * `redis://user:password@host:port/database`, `rediss://` for TLS, `redis+sentinel://h1,h2,h3/master?db=0`,
 * `redis+cluster://h1,h2`, sentinels with `?sentinelUser=…&sentinelPassword=…`, each with `?prefix=…&driver=…&fencing=…&replicas=…&replicaTimeout=…`. Read by hand: the standard URL has one host.
 */
export function parseUrl(url: string): RedisAddress {
  const [, scheme = '', topology, credentials, places = '', path = '', query] = SHAPE.exec(url) ?? []
  if (scheme === '')
    return refuse(
      url,
      'must look like redis://host:port, redis+sentinel://h1,h2/master or redis+cluster://h1,h2',
    )
  const kind = (topology?.toLowerCase() ?? 'server') as RedisAddress['kind']
  const [first, ...others] = places.split(',').map((place) => parseHost(place, PORTS[kind], url))
  if (first === undefined || (kind === 'server' && others.length > 0)) {
    return refuse(url, 'names several servers: say whether they are a redis+sentinel or a redis+cluster')
  }
  const [name, ...more] = path
    .split('/')
    .slice(1)
    .map((part) => decode(part, url))
    .filter((part) => part !== '')
  // A plus is a plus, as before the hosts.
  const options = new URLSearchParams(query?.replaceAll('+', '%2B'))
  const database = options.get('db') ?? (kind === 'server' ? name : more[0]) ?? '0'
  if (!/^\d{1,4}$/.test(database)) return refuse(url, 'has a database that is not a number')
  if (more.length > (kind === 'sentinel' ? 1 : 0) || (kind === 'cluster' && name !== undefined)) {
    return refuse(url, 'has more in its path than belongs there')
  }
  if (kind === 'sentinel' && name === undefined)
    return refuse(url, "lacks the primary's name: redis+sentinel://h1,h2/master")
  if (kind === 'cluster' && database !== '0')
    return refuse(url, 'names a database, but a cluster has only one')
  return {
    kind,
    tls: scheme.toLowerCase() === 'rediss',
    hosts: [first, ...others],
    database: Number(database),
    options: optionsOf(options, kind, url),
    ...parseCredentials(credentials, url),
    ...(kind === 'sentinel' && name !== undefined ? { master: name, ...sentinelLogin(options) } : {}),
  }
}

function sentinelLogin(given: URLSearchParams): Pick<RedisAddress, 'sentinelLogin'> {
  const [username, password] = [given.get('sentinelUser'), given.get('sentinelPassword')]
  if (password === null) return {}
  return { sentinelLogin: { ...(username === null ? {} : { username }), password } }
}

/** Checked further by the store, which knows what they mean. */
function optionsOf(given: URLSearchParams, kind: RedisAddress['kind'], url: string): UrlOptions {
  const options: Record<string, string | number> = {}
  for (const [name, value] of given) {
    switch (name) {
      case 'db':
        break
      case 'sentinelUser':
      case 'sentinelPassword':
        if (kind !== 'sentinel') refuse(url, 'has a password for sentinels, and no sentinels')
        if (!given.has('sentinelPassword')) refuse(url, 'has a user for sentinels, and no password')
        break
      case 'driver':
        if (value !== 'ioredis' && value !== 'redis')
          refuse(url, 'has a driver that is neither ioredis nor redis')
        options[name] = value
        break
      case 'prefix':
      case 'fencing':
        options[name] = value
        break
      case 'replicas':
      case 'replicaTimeout':
        options[name] = value === '' ? Number.NaN : Number(value)
        break
      default:
        refuse(url, `has an option that no Redis URL has: ${name}`)
    }
  }
  return options
}

function parseHost(place: string, port: number, url: string): Host {
  const [, six, four, given] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i.exec(place.trim()) ?? []
  const host = six ?? four
  if (host === undefined || Number(given ?? port) > 65_535)
    return refuse(url, 'has a host that cannot be read')
  return { host: decode(host, url), port: Number(given ?? port) }
}

function parseCredentials(text: string | undefined, url: string): { user?: string; password?: string } {
  if (text === undefined || text === '') return {}
  const colon = text.indexOf(':')
  const user = decode(colon < 0 ? text : text.slice(0, colon), url)
  const password = colon < 0 ? '' : decode(text.slice(colon + 1), url)
  return { ...(user === '' ? {} : { user }), ...(password === '' ? {} : { password }) }
}

function decode(text: string, url: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return refuse(url, 'has a % that begins no code')
  }
}

function refuse(url: string, problem: string): never {
  throw new InvalidArgumentError(`The URL "${redact(url)}" ${problem}`, { argument: 'url' })
}
