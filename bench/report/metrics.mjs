// What each number is called and how it is written. One place, so that the terminal, the docs and the page agree.

const digits = (value) => {
  if (value === 0) return '0'
  if (!Number.isFinite(value)) return Number.isNaN(value) ? '–' : '∞'
  const size = Math.abs(value)
  if (size >= 100) return Math.round(value).toLocaleString('en')
  if (size >= 10) return value.toFixed(1)
  if (size >= 1) return value.toFixed(2)
  return value.toFixed(size >= 0.1 ? 2 : 3)
}

const time = (ms) => {
  if (!Number.isFinite(ms)) return Number.isNaN(ms) ? '–' : '∞'
  if (ms < 0.001) return `${digits(ms * 1e6)} ns`
  if (ms < 1) return `${digits(ms * 1000)} µs`
  return ms < 10_000 ? `${digits(ms)} ms` : `${digits(ms / 1000)} s`
}

const percent = (value) => `${digits(value)} %`
const times = (value) => `${digits(value)} ×`
const share = (value) => (Number.isNaN(value) ? '–' : `${Math.round(value * 100)} %`)
const bytes = (value) =>
  value < 10_000 ? `${Math.round(value).toLocaleString('en')} B` : `${digits(value / 1024)} KB`
const megabytes = (value) => `${digits(value)} MB`

/**
 * `total`: counts that are added up over the rounds; all others are medians.
 * @type {Record<string, { label: string, write: (value: number) => string, better: 'more' | 'less', total?: boolean }>}
 */
export const METRICS = {
  rate: { label: 'sections/s', write: digits, better: 'more' },
  toRaw: { label: 'of raw', write: times, better: 'more' },
  keeps: { label: 'of alone', write: times, better: 'more' },
  toHealthy: { label: 'p99 of healthy', write: times, better: 'less' },
  timesOneLock: { label: 'of one lock', write: times, better: 'more' },
  cost: { label: 'µs a section', write: digits, better: 'less' },
  p50: { label: 'p50', write: time, better: 'less' },
  p90: { label: 'p90', write: time, better: 'less' },
  p99: { label: 'p99', write: time, better: 'less' },
  max: { label: 'max', write: time, better: 'less' },
  waitShare: { label: 'worst wait', write: times, better: 'less' },
  readP50: { label: 'read wait p50', write: time, better: 'less' },
  readP99: { label: 'read wait p99', write: time, better: 'less' },
  writeP50: { label: 'write wait p50', write: time, better: 'less' },
  writeP99: { label: 'write wait p99', write: time, better: 'less' },
  switchTask: { label: 'to another task', write: share, better: 'more' },
  switchProcess: { label: 'switched', write: share, better: 'more' },
  fairTask: { label: 'most/least per task', write: digits, better: 'less' },
  fairProcess: { label: 'per process', write: digits, better: 'less' },
  starved: { label: 'got nothing', write: digits, better: 'less', total: true },
  requests: { label: 'requests a section', write: digits, better: 'less' },
  serverOps: { label: 'server commands a section', write: digits, better: 'less' },
  clientCpu: { label: 'client CPU µs', write: digits, better: 'less' },
  serverCpu: { label: 'server CPU µs', write: digits, better: 'less' },
  idleRequests: { label: 'requests/s', write: digits, better: 'less' },
  idleCpu: { label: 'client CPU', write: percent, better: 'less' },
  idleServerCpu: { label: 'server CPU', write: percent, better: 'less' },
  bare: { label: "node -e ''", write: time, better: 'less' },
  added: { label: 'added', write: time, better: 'less' },
  drainMs: { label: 'all through after', write: time, better: 'less' },
  through: { label: 'got through', write: digits, better: 'more' },
  loopP99: { label: 'loop delay p99', write: time, better: 'less' },
  loopMax: { label: 'loop delay max', write: time, better: 'less' },
  stillHeld: { label: 'still held', write: digits, better: 'more' },
  rss: { label: 'RSS', write: megabytes, better: 'less' },
  heapTotalMb: { label: 'in all', write: megabytes, better: 'less' },
  bytesEach: { label: 'each', write: bytes, better: 'less' },
  message: { label: 'message alone, p50', write: time, better: 'less' },
  handOvers: { label: 'hand-overs', write: digits, better: 'more', total: true },
  wrong: { label: 'sold or left too much', write: digits, better: 'less', total: true },
  lost: { label: 'lost updates', write: digits, better: 'less', total: true },
  overlaps: { label: 'overlaps', write: digits, better: 'less', total: true },
  split: { label: 'first attempts split', write: share, better: 'less' },
  attempts: { label: 'attempts', write: digits, better: 'less' },
  races: { label: 'races', write: digits, better: 'more', total: true },
  errors: { label: 'errors', write: digits, better: 'less', total: true },
}
