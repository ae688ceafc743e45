/** Parts of a store's address: what stands before the hosts, the hosts, and what follows them. */
const SHAPE = /^([a-z][a-z0-9+.-]*:\/\/(?:[^@/?#]*@)?)([^@/?#]+)(.*)$/is

const PORTS: Readonly<Record<string, number>> = {
  redis: 6379,
  redlock: 6379,
  mysql: 3306,
  postgres: 5432,
  postgresql: 5432,
  zookeeper: 2181,
  memcached: 11_211,
  holdfast: 7420,
}

export interface Endpoint {
  readonly host: string
  readonly port: number
}

const schemeOf = (url: string): string => /^[a-z][a-z0-9+.-]*(?=:)/i.exec(url)?.[0].toLowerCase() ?? ''

/** What drivers of databases read behind the question mark, and go by instead of the place before it. */
const ELSEWHERE = /^(host|hostaddr|port|socketPath)$/i
/** And what makes them encrypt, and check the name of the host. */
const ENCRYPTED = /^ssl/i

function querySays(url: string, key: RegExp): readonly string[] {
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? []
  return [...new URLSearchParams(query)].flatMap(([name, value]) => (key.test(name) ? value : []))
}

/** The machines that an address names. None: a file, a socket or this process. */
export function hostsOf(url: string): readonly string[] {
  const [, , places] = SHAPE.exec(url) ?? []
  if (/^(sqlite|memory|holdfast\+unix):/i.test(url)) return []
  const named =
    places?.split(',').map((place) => place.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')) ?? []
  // A path is a socket of this machine.
  const others = querySays(url, /^host(addr)?$/i).filter((host) => !host.startsWith('/'))
  return [...named, ...others]
}

export function isLoopback(url: string): boolean {
  return hostsOf(url).every((host) => /^(localhost|127(\.\d+){3}|::1)$/i.test(host))
}

/**
 * The servers whose connections can be led through proxies. Undefined where that would change what is tested: an
 * encrypted connection checks the host's name, clusters and sentinels tell their clients where else to go, and a driver may be told it by
 * the address itself, behind the question mark.
 */
export function endpointsOf(url: string): readonly Endpoint[] | undefined {
  const port = PORTS[schemeOf(url)]
  const [, , places] = SHAPE.exec(url) ?? []
  if (port === undefined || places === undefined) return undefined
  const encrypted = querySays(url, ENCRYPTED).some((value) => !/^(disable|false|0)?$/i.test(value))
  if (encrypted || querySays(url, ELSEWHERE).length > 0) return undefined
  return places.split(',').map((place, index) => {
    const given = /:(\d+)$/.exec(place)?.[1]
    return { host: hostsOf(url)[index] ?? '', port: given === undefined ? port : Number(given) }
  })
}

/** The same address by way of other hosts and ports. */
export function by(url: string, endpoints: readonly Endpoint[]): string {
  const places = endpoints.map(({ host, port }) => `${host}:${port}`).join(',')
  return url.replace(
    SHAPE,
    (_, before: string, _places: string, after: string) => `${before}${places}${after}`,
  )
}
