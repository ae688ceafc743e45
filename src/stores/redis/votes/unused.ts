/**
 * What a server's own statistics prove. Votes are given by scripts only; so a server that ran none since it started, longer
 * ago than any lease lasts, has no vote to forget: nobody emptied it, nothing was evicted, no old file was loaded that would
 * matter. Everything that could make these numbers untrue is a no: they were set back, they are not kept, the server was
 * somebody's replica, its keys come and go with the slots of a Cluster.
 */
export function isUnused(info: string, probation: number): boolean {
  const uptime = Number(/^uptime_in_seconds:(\d+)/m.exec(info)?.[1])
  // Whole seconds: it may have been up for almost one less.
  if (!((uptime - 1) * 1000 >= probation)) return false
  return (
    /^# Commandstats/m.test(info) &&
    // A server forgets after an hour without replicas (repl-backlog-ttl) whose replica it was, but not that it was promoted.
    !/^cmdstat_(eval|config\|resetstat:|config:|replicaof|slaveof)/m.test(info) &&
    /^role:master/m.test(info) &&
    /^master_replid2:0+\r?$/m.test(info) &&
    /^cluster_enabled:0/m.test(info)
  )
}

/** Why a server cannot be a node, as far as it tells; `undefined` if nothing is wrong. */
export function evicts(info: string): string | undefined {
  const policy = /^maxmemory_policy:([\w-]+)/m.exec(info)?.[1]
  const limit = /^maxmemory:(\d+)/m.exec(info)?.[1]
  if (policy === undefined || policy === 'noeviction' || limit === undefined || limit === '0')
    return undefined
  return `the server evicts keys when its memory is full (${policy}): it would forget votes and not know it. Set maxmemory-policy to noeviction`
}

/**
 * Milliseconds until a server that was started from a snapshot may vote. What was granted after that snapshot it has forgotten,
 * and its mark does not tell: that is in the snapshot too. A log that is written with every command (AOF) loses nothing when
 * only the process ends; but one that was turned on since begins with what the snapshot had, and is written anew for that.
 * Where the server does not say how it was started, nothing is known.
 */
export function lookingOn(info: string, probation: number): number {
  const loaded = Number(/^rdb_last_load_keys_loaded:(\d+)/m.exec(info)?.[1] ?? 0)
  if (loaded === 0 || isFromLog(info)) return 0
  const uptime = Number(/^uptime_in_seconds:(\d+)/m.exec(info)?.[1])
  // Whole seconds: it may have been up for almost one less.
  return Math.max(0, probation - (uptime - 1) * 1000)
}

/** Whether its log is the one that it was started with. */
function isFromLog(info: string): boolean {
  return (
    !/^aof_enabled:0/m.test(info) &&
    !/^(aof_rewrite_(in_progress|scheduled):1|aof_last_rewrite_time_sec:\d)/m.test(info)
  )
}

/** What it says of its start is not true before it has loaded everything; but it does say it. */
export function isLoading(info: string): boolean {
  return /^(async_)?loading:1/m.test(info)
}

export class StartedFromSnapshot extends Error {
  constructor(wait: number) {
    super(
      `it was started from a snapshot, and may have forgotten votes: it votes in ${Math.ceil(wait / 1000)} s`,
    )
  }
}
