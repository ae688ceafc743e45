import { withDriver } from './client/index.ts'
import type { RedisClient } from './client/index.ts'
import { settingsOf } from './durable.ts'

import type { Driver, Node } from './client/driver.ts'

// Taken once: a user's fake timers must not reach locks.
const { Date } = globalThis

export interface StartupFinding {
  /** `error`: locks do not work there. `warning`: they may be lost. `info`: good to know. */
  readonly level: 'ok' | 'info' | 'warning' | 'error'
  readonly code:
    | 'version'
    | 'scripts'
    | 'eviction'
    | 'persistence'
    | 'replicas'
    | 'role'
    | 'cluster'
    | 'writes'
    | 'clock'
    | 'unchecked'
  readonly message: string
  /** What to do about it. */
  readonly hint?: string
}

/** What a server says of itself; what it does not tell is left out. */
export interface ServerReport {
  readonly info: ReadonlyMap<string, string>
  readonly settings: ReadonlyMap<string, string>
  /** Milliseconds by which its clock is ahead of ours. */
  readonly clockOffset: number
  readonly roundTrip: number
}

/** What an operator should know of a server before trusting it with locks. Of a Cluster, every primary is asked. */
export async function startupChecks(client: RedisClient): Promise<readonly StartupFinding[]> {
  return withDriver(client, checkDriver)
}

export async function checkDriver(driver: Driver): Promise<readonly StartupFinding[]> {
  const primaries = await driver.primaries()
  const perServer = await Promise.all(
    primaries.map(async (node) => {
      const known = await report(node)
      return [...findings(known), ...clusterMode(known, driver.cluster)]
    }),
  )
  const missing = driver.missing?.()
  if (missing !== undefined) {
    const message = `the primary at ${missing} cannot be asked: its locks cannot be had`
    perServer.push([{ level: 'error', code: 'cluster', message }])
  }
  const seen = new Set<string>()
  // Twenty nodes with one setting wrong are one thing to say.
  return perServer.flat().filter(({ level, code, message }) => {
    const said = `${level} ${code} ${message}`
    return !seen.has(said) && seen.add(said)
  })
}

async function report(node: Node): Promise<ServerReport> {
  const began = Date.now()
  const [seconds, micros] = (await node.send(['time'])) as [string, string]
  const ended = Date.now()
  const middle = (began + ended) / 2
  // Managed services forbid CONFIG, and some INFO. What is not known is said to be so.
  const info = await node.send(['info']).then(String, () => '')
  const settings = await settingsOf(node, [
    'maxmemory',
    'maxmemory-policy',
    'appendonly',
    'appendfsync',
    'save',
    'replica-read-only',
  ]).catch(() => new Map<string, string>())
  return {
    info: new Map(
      [...info.matchAll(/^([\w-]+):(.*?)\r?$/gm)].map(([, name = '', value = '']) => [name, value]),
    ),
    settings,
    clockOffset: Number(seconds) * 1000 + Number(micros) / 1000 - middle,
    roundTrip: ended - began,
  }
}

/** A pure function of what the server said. */
export function findings({
  info,
  settings,
  clockOffset,
  roundTrip,
}: ServerReport): readonly StartupFinding[] {
  return [
    version(info),
    ...role(info, settings),
    ...eviction(info, settings),
    ...persistence(info, settings),
    ...replicas(info),
    clock(clockOffset, roundTrip),
  ]
}

const OLDEST = [6, 2] as const

/** What the client is made for and what the server is are two things. */
function clusterMode({ info }: ServerReport, client: boolean): StartupFinding[] {
  // Not `redis_mode`, which Valkey calls otherwise.
  if (client || info.get('cluster_enabled') !== '1') return []
  return [
    {
      level: 'warning',
      code: 'cluster',
      message:
        'is one of a Redis Cluster, and the client is for one server: it gets the locks of this one only',
      hint: 'Use redis+cluster://, or a client for a Cluster.',
    },
  ]
}

function version(info: ServerReport['info']): StartupFinding {
  if (!info.has('redis_version') && !info.has('valkey_version'))
    return unchecked('its version: INFO is not allowed')
  const valkey = info.get('valkey_version')
  const shown =
    valkey === undefined ? `Redis ${info.get('redis_version') ?? 'of unknown version'}` : `Valkey ${valkey}`
  // Valkey goes on calling itself the Redis that it is compatible with.
  const [major = 0, minor = 0] = (info.get('redis_version') ?? '').split('.').map(Number)
  const old = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])
  if (!old) return { level: 'ok', code: 'version', message: shown }
  return {
    level: 'error',
    code: 'version',
    message: `${shown} is too old`,
    hint: `Use Redis ${OLDEST.join('.')} or newer, or Valkey.`,
  }
}

function role(info: ServerReport['info'], settings: ServerReport['settings']): StartupFinding[] {
  const given = info.get('role')
  if (given === undefined) return [unchecked('whether it is a primary')]
  // In a Cluster a replica sends everybody on, whatever it takes.
  if (
    given === 'master' &&
    (settings.get('replica-read-only') !== 'no' || info.get('cluster_enabled') === '1')
  )
    return []
  if (given === 'master') {
    return [
      {
        level: 'warning',
        code: 'role',
        message:
          'would take locks also as a replica (replica-read-only no): if it is made one, they can be held twice until that is noticed',
        hint: 'Set replica-read-only to yes.',
      },
    ]
  }
  const hint = 'Connect to the primary; through Sentinel, ask for the master.'
  return [{ level: 'error', code: 'role', message: 'this is a replica: it takes no locks', hint }]
}

function eviction(info: ServerReport['info'], settings: ServerReport['settings']): StartupFinding[] {
  const policy = settings.get('maxmemory-policy') ?? info.get('maxmemory_policy')
  const limit = settings.get('maxmemory') ?? info.get('maxmemory')
  if (policy === undefined) return [unchecked('whether it evicts keys')]
  if (policy === 'noeviction' || limit === '0') {
    return [
      {
        level: 'ok',
        code: 'eviction',
        message: `evicts nothing (${policy}${limit === '0' ? ', no limit' : ''})`,
      },
    ]
  }
  const message = `evicts keys when its memory is full (${policy}), held locks among them`
  return [
    {
      level: 'warning',
      code: 'eviction',
      message,
      hint: 'Set maxmemory-policy to noeviction, or give locks a server of their own.',
    },
  ]
}

function persistence(info: ServerReport['info'], settings: ServerReport['settings']): StartupFinding[] {
  if (!settings.has('appendonly') && !info.has('aof_enabled')) return [unchecked('what it keeps on disk')]
  const log = settings.get('appendonly') ?? (info.get('aof_enabled') === '1' ? 'yes' : 'no')
  const fsync = settings.get('appendfsync')
  if (log === 'yes') {
    if (fsync === 'always')
      return [{ level: 'ok', code: 'persistence', message: 'writes every lock to disk before it answers' }]
    const message = `writes locks to disk (appendfsync ${fsync ?? 'unknown'}): a power cut may lose the last two seconds`
    return [{ level: 'info', code: 'persistence', message }]
  }
  const snapshots = settings.get('save')
  const what =
    snapshots === undefined || snapshots === '' ? 'keeps nothing on disk' : 'keeps only snapshots on disk'
  return [
    {
      level: 'warning',
      code: 'persistence',
      message: `${what}: a restart forgets locks that are held, and they can be held twice until the old leases end`,
      hint: 'Set appendonly to yes, or have the resource check tokens, or let the server come back only after the longest lease.',
    },
  ]
}

function replicas(info: ServerReport['info']): StartupFinding[] {
  const count = Number(info.get('connected_slaves') ?? 0)
  if (count === 0) return []
  return [
    {
      level: 'info',
      code: 'replicas',
      message: `has ${count} ${count === 1 ? 'replica' : 'replicas'}: a failover may lose locks that were just taken`,
      hint: 'Set `replicas` to make that less likely; only a resource that checks tokens makes it harmless.',
    },
  ]
}

/** Beyond an hour a token says nothing about time any more, and a server that comes back right would repeat none for long. */
const FAR_MS = 3_600_000
const NOTABLE_MS = 1_000

function clock(offset: number, roundTrip: number): StartupFinding {
  const by = Math.abs(offset)
  const where = `its clock is ${Math.round(by)} ms ${offset < 0 ? 'behind' : 'ahead of'} this machine's`
  if (by <= NOTABLE_MS + roundTrip) return { level: 'ok', code: 'clock', message: where }
  const hint =
    'Leases are measured on the server alone, so a steady difference does no harm; a clock that jumps does. Let it be slewed, not stepped.'
  return { level: by > FAR_MS ? 'error' : 'warning', code: 'clock', message: where, hint }
}

function unchecked(text: string): StartupFinding {
  return { level: 'info', code: 'unchecked', message: `does not tell ${text}` }
}
