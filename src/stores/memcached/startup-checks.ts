import type { Unknown } from '../../core/contract.ts'
import { isUnknown, unknown } from '../../core/unknown.ts'
import { refused } from './failure.ts'
import type { Connection } from './connection.ts'
import { isError } from './protocol.ts'
import type { Reply } from './protocol.ts'

/** What a server says of itself. */
export interface ServerReport {
  readonly stats: ReadonlyMap<string, string>
  readonly settings: ReadonlyMap<string, string>
  readonly ownCas: boolean
}

export interface StartupFinding {
  readonly check: 'version' | 'cas' | 'evictions' | 'eviction-policy' | 'memory' | 'flushes' | 'connections'
  /** `error`: locks do not work. `warning`: they may be lost. */
  readonly level: 'ok' | 'warning' | 'error'
  readonly message: string
}

export async function readSettings(connection: Connection, timeout: number): Promise<ServerReport | Unknown> {
  const [stats, settings] = await Promise.all([
    connection.askPlain('stats\r\n', 'stats', timeout),
    connection.askPlain('stats settings\r\n', 'stats', timeout),
  ])
  if (isUnknown(stats)) return stats
  if (isUnknown(settings)) return settings
  const error = [...stats, ...settings].find(isError)
  if (error !== undefined) return refused(error)
  if (stats.length < 2) return unknown(new Error('memcached says nothing of itself'))
  return { stats: table(stats), settings: table(settings), ownCas: connection.ownCas }
}

function table(replies: readonly Reply[]): ReadonlyMap<string, string> {
  const entries = replies.flatMap(({ line }) => {
    const [, name, value] = /^STAT (\S+) (.*)$/.exec(line) ?? []
    return name === undefined || value === undefined ? [] : ([[name, value]] as const)
  })
  return new Map(entries)
}

/** A server this full is about to evict, or to refuse. */
const FULL = 0.8

/** What an operator should know before trusting a server with locks. A pure function of what the server said. */
export function startupFindings({ stats, settings, ownCas }: ServerReport): readonly StartupFinding[] {
  const number = (name: string): number => Number(stats.get(name) ?? 0)
  const findings: StartupFinding[] = []
  const say = (check: StartupFinding['check'], level: StartupFinding['level'], message: string): void => {
    findings.push({ check, level, message })
  }
  const version = stats.get('version') ?? 'of an unknown version'
  say(
    'version',
    'ok',
    ownCas
      ? `memcached ${version}`
      : `memcached ${version}; from 1.6.27 on, releases after a reconnect are one round trip shorter`,
  )

  if (settings.get('cas_enabled') === 'no') {
    say('cas', 'error', 'runs with -C (CAS disabled): the store refuses to work there. Start it without -C.')
  } else say('cas', 'ok', 'CAS is enabled')

  const evictions = number('evictions')
  if (evictions > 0) {
    say(
      'evictions',
      'warning',
      `has evicted ${evictions} items that had not run out, and a held lock may be the next. Give locks an instance of their own.`,
    )
  } else say('evictions', 'ok', 'nothing was evicted')

  if (settings.get('evictions') === 'off') {
    say(
      'eviction-policy',
      'ok',
      'runs with -M: it refuses new items when it is full instead of evicting locks',
    )
  } else {
    say(
      'eviction-policy',
      'warning',
      'evicts items when it is full, also held locks. With -M it refuses new ones instead.',
    )
  }

  const used = number('bytes') / Math.max(1, number('limit_maxbytes'))
  const share = `${Math.round(used * 100)} % of its memory is in use`
  if (used >= FULL) say('memory', 'warning', `${share}: it will soon evict locks, or refuse them`)
  else say('memory', 'ok', share)

  const flushes = number('cmd_flush')
  if (flushes > 0)
    say('flushes', 'warning', `was emptied ${flushes} times by flush_all: that ends every lock at once`)
  else say('flushes', 'ok', 'was never emptied')

  const refusals = number('listen_disabled_num')
  if (refusals > 0) say('connections', 'warning', `was out of connections ${refusals} times; raise -c`)
  else say('connections', 'ok', 'was never out of connections')
  return findings
}
