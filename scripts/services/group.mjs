/**
 * Several servers that are started and hurt as one; `host`, `port`, `pid`, `url` and `dir` are those of the first.
 * @template {object} T
 * @param {import('../services.d.mts').Server[]} members
 * @param {T} more
 */
export function group(members, more) {
  const [first] = members
  const all = (act) => Promise.all(members.map(act))
  const stop = () => all((member) => member.stop())
  return Object.defineProperties(
    {
      stop,
      kill: (signal) => all((member) => member.kill(signal)),
      restart: (options) => all((member) => member.restart(options)),
      pause: () => all((member) => member.pause()),
      resume: () => all((member) => member.resume()),
      [Symbol.asyncDispose]: stop,
      ...more,
    },
    // Read from the first each time: a restart changes the process id.
    Object.fromEntries(
      ['host', 'port', 'pid', 'url', 'dir'].map((name) => [
        name,
        { enumerable: true, get: () => first[name] },
      ]),
    ),
  )
}

/** Starts all, or none: when one fails, those that came up are stopped before the failure is reported. */
export async function startAll(starts) {
  const results = await Promise.allSettled(starts.map((start) => start()))
  const failed = results.find(({ status }) => status === 'rejected')
  const started = results.flatMap(({ status, value }) => (status === 'fulfilled' ? [value] : []))
  if (failed === undefined) return started
  await Promise.all(started.map((server) => server.stop()))
  throw failed.reason
}
