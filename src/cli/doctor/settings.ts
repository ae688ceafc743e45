import type { Finding } from './checks.ts'

/** What a store says of its own server. */
interface StartupFinding {
  readonly level: 'ok' | 'info' | 'warning' | 'error'
  readonly message: string
  readonly code?: string
  readonly check?: string
  readonly hint?: string
}

const CHECKS: readonly (readonly [RegExp, (url: string) => Promise<readonly StartupFinding[]>])[] = [
  [/^rediss?(\+\w+)?:/i, async (url) => (await import('../../stores/redis/open.ts')).checkRedis(url)],
  [/^redlocks?:/i, async (url) => (await import('../../stores/quorum/startup-checks.ts')).checkRedlock(url)],
  [/^memcacheds?:/i, async (url) => (await import('../../stores/memcached/open.ts')).checkMemcached(url)],
]

const STATUS = { ok: 'ok', info: 'ok', warning: 'warn', error: 'fail' } as const

/** The settings of the server behind a URL, as far as its store knows which of them break locks. */
export async function settingsOf(url: string): Promise<readonly Finding[]> {
  const check = CHECKS.find(([scheme]) => scheme.test(url))?.[1]
  if (check === undefined) return []
  return (await check(url)).map(({ level, message, code, check: name, hint }) => ({
    status: STATUS[level],
    what: code ?? name ?? 'setting',
    detail: hint === undefined ? message : `${message}. ${hint}`,
  }))
}
