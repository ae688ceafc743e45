/**
 * A store's URL as it may be shown: who and where, never the password. Everything that prints, logs or throws a URL
 * goes through here. A URL that is not written as it should be loses more than its password rather than a part of it less.
 */
export function redact(url: string): string {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*:(?:\/\/)?)?(.*)$/is.exec(url) ?? []
  const { place, query } = split(rest)
  // What follows these is a file, and files may have an @ in their names.
  if (isFile(scheme, place)) return scheme + place + redactQuery(query)
  if (!rest.includes('@')) return scheme + place + redactQuery(query)
  const hosts = scheme.endsWith('//') && !query.includes('@') ? redactHosts(place) : undefined
  if (hosts !== undefined) return scheme + hosts + redactQuery(query)
  // The @ may belong to a secret behind the question mark, and what follows it, too.
  if (redactQuery(query) !== query) return scheme + HIDDEN
  return scheme + HIDDEN + redactQuery(rest.slice(rest.lastIndexOf('@')))
}

/** Whether a path follows. In `holdfast+unix://:token@/path`, which is refused, a secret comes first. */
function isFile(scheme: string, place: string): boolean {
  return /^sqlite:/i.test(scheme) || (/^holdfast\+unix:/i.test(scheme) && !/^[^/]+@/.test(place))
}

/** Whether showing the URL as it is would show a secret. */
export function hasSecret(url: string): boolean {
  return redact(url) !== url
}

const HIDDEN = '***'

function split(rest: string): { readonly place: string; readonly query: string } {
  const end = rest.search(/[?#]/)
  return end < 0 ? { place: rest, query: '' } : { place: rest.slice(0, end), query: rest.slice(end) }
}

/** `u:p@h1,u:p@h2/path`. Undefined when it is not quite like that: a comma, an @ or a / may belong to a password. */
function redactHosts(place: string): string | undefined {
  const hosts = place.split(',')
  const regular = hosts.every((host) => /^([^:@/]*(:[^@/]*)?@)?[^@/]+(\/[^@]*)?$/.test(host))
  if (!regular || hosts[0]?.includes('@') !== true) return undefined
  // Of several only whole ones are believed: `:a@b,c@host` may be one host whose password is `a@b,c`.
  const named = hosts.filter((host) => host.includes('@'))
  if (named.length > 1 && !hosts.every((host) => /^[^:@/]+:[^@/]+@/.test(host))) return undefined
  return hosts.map((host) => host.replace(/^([^:@/]*):[^@/]*@/, `$1:${HIDDEN}@`)).join(',')
}

function redactQuery(query: string): string {
  return query
    .replace(/([?&#][^=&#]*(?:pass|pwd|secret|token|auth|key)[^=&#]*=)[^&#]*/gi, `$1${HIDDEN}`)
    .replace(/([?&#][^=&#]*=)((?:\{|%7b).*)/is, (whole, name: string, value: string) =>
      isSecretObject(value) ? `${name}${HIDDEN}` : whole,
    )
}

/** An object as JSON, and all behind it (`ssl={"passphrase":"…"}`): with the name of a secret, or with what nobody can read. */
function isSecretObject(value: string): boolean {
  try {
    return /pass|pwd|secret|token|key|pfx/i.test(decodeURIComponent(value))
  } catch {
    return true
  }
}
