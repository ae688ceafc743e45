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
