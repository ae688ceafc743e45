import { MAX_MS } from '../core/arguments.ts'
import { UsageError } from './exit.ts'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `500ms`, `30s`, `1.5m`, `2h` or `0`, in milliseconds. A number alone is refused: it could mean seconds or milliseconds. */
export function parseDuration(option: string, text: string): number {
  if (text === '0') return 0
  const [, number, unit] = /^(\d+(?:\.\d+)?)([a-z]*)$/.exec(text) ?? []
  if (number === undefined || unit === undefined || (unit !== '' && UNITS[unit] === undefined)) {
    throw new UsageError(`${option} takes a time like 500ms, 30s, 5m or 1h; got "${text}"`)
  }
  const scale = UNITS[unit]
  if (scale === undefined) {
    throw new UsageError(`${option} ${text}: of what? Say ${text}s or ${text}ms`)
  }
  const ms = Math.round(Number(number) * scale)
  if (ms > MAX_MS) throw new UsageError(`${option} may be at most 24d; got "${text}"`)
  return ms
}

/** A duration, or `forever`. */
export function parseWait(option: string, text: string): number {
  return text === 'forever' ? Infinity : parseDuration(option, text)
}

/** For people: `850ms`, `12.3s`, `4m 05s`, `3h 20m`. */
export function showDuration(ms: number): string {
  if (ms === Infinity) return 'forever'
  if (ms < 1000) return `${Math.round(ms)}ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)}s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes}m ${two((ms % 60_000) / 1000)}s`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours}h ${two(minutes % 60)}m` : `${Math.floor(hours / 24)}d ${two(hours % 24)}h`
}

function two(part: number): string {
  return String(Math.floor(part)).padStart(2, '0')
}
