import { execFileSync } from 'node:child_process'
import { cpus, loadavg, platform, release, totalmem } from 'node:os'

/** Where and when: without it a number means nothing. No host name, no user, no path. */
export function environment() {
  const [first] = cpus()
  return {
    date: new Date().toISOString(),
    node: process.version,
    cpu: first?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    os: `${platform()} ${release().split('-')[0]}`,
    loadBefore: loadavg().map((load) => Number(load.toFixed(2))),
    commit: commit(),
  }
}

function commit() {
  try {
    const git = (...args) =>
      execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    const changed = git('status', '--porcelain', '--', 'src') === '' ? '' : ' with changes'
    return git('rev-parse', '--short', 'HEAD') + changed
  } catch {
    return 'unknown'
  }
}
