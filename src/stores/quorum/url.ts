import { InvalidArgumentError } from '../../core/errors.ts'
import { redact } from '../../core/redact.ts'
import type { QuorumOptions } from './options.ts'

/** What a redlock:// URL says: a redis:// URL for each node, and the settings of the quorum. */
export interface RedlockAddress {
  readonly nodes: readonly { readonly url: string; readonly label: string }[]
  readonly options: QuorumOptions
}

const SHAPE = /^redlock(s?):\/\/(?:([^@/?#]*)@)?([^@/?#]+)((?:\/[^?#]*)?)(?:\?([^#]*))?$/i
const PORT = 6379
const OF_NODES: ReadonlySet<string> = new Set(['prefix', 'driver'])

/**
 * `redlock://user:password@h1:port,h2,h3/database?setup=now&maxTtl=30000&nodeTimeout=50&prefix=app&driver=redis`, `redlocks://`
 * for TLS. What is not for the quorum is in the URL of each node.
 */
export function parseRedlockUrl(url: string): RedlockAddress {
  const [, tls = '', credentials, places = '', path = '', query] = SHAPE.exec(url) ?? []
  if (places === '') return refuse(url, 'must look like redlock://h1:port,h2:port,h3:port')
  const login = credentials === undefined ? '' : `${credentials}@`
  // A plus is a plus, as before the hosts.
  const given = new URLSearchParams(query?.replaceAll('+', '%2B'))
  const forEach = new URLSearchParams([...given].filter(([name]) => OF_NODES.has(name)))
  const suffix = forEach.size === 0 ? path : `${path}?${forEach.toString().replaceAll('+', '%20')}`
  const nodes = places.split(',').map((place) => {
    const host = place.trim()
    // An address of version 6 has colons of its own.
    const label = /:\d+$/.test(host.replace(/^\[.*\]/, '')) ? host : `${host}:${PORT}`
    return { url: `redis${tls}://${login}${host}${suffix}`, label: label.toLowerCase() }
  })
  const labels = nodes.map(({ label }) => label)
  const twice = labels.find((label, at) => labels.indexOf(label) !== at)
  if (twice !== undefined) return refuse(url, `names ${twice} twice: it would have two votes`)
  return { nodes, options: { ...optionsOf(given, url), labels } }
}

function optionsOf(given: URLSearchParams, url: string): QuorumOptions {
  const options: { maxTtl?: number; nodeTimeout?: number; setUp?: 'wait' | 'now' } = {}
  for (const [name, value] of given) {
    if (OF_NODES.has(name)) continue
    switch (name.toLowerCase()) {
      case 'setup':
        if (value !== 'now' && value !== 'wait') refuse(url, 'has a setup that is neither now nor wait')
        options.setUp = value as 'wait' | 'now'
        break
      case 'maxttl':
        options.maxTtl = Number(value)
        break
      case 'nodetimeout':
        options.nodeTimeout = Number(value)
        break
      default:
        refuse(url, `has an option that no redlock URL has: ${name}`)
    }
  }
  return options
}

function refuse(url: string, problem: string): never {
  throw new InvalidArgumentError(`The URL "${redact(url)}" ${problem}`, { argument: 'url' })
}
