// Requests that this process sent to its store. The server's own count will not do: it also counts what a script
// calls inside, and a library with one script would look like one with ten commands.
let sent = 0

export const requestsSent = () => sent

/** Makes `owner[method]` count `howMany(...args)` requests each time it is called. */
export function countRequests(owner, method, howMany = () => 1) {
  const original = owner[method]
  owner[method] = function counted(...args) {
    sent += howMany(...args)
    return original.apply(this, args)
  }
}
