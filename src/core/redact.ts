/**
 * A store's URL as it may be shown: who and where, never the password. Everything that prints, logs or throws a URL
 * goes through here.
 */
export function redact(url: string): string {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*:(?:\/\/)?)?(.*)$/is.exec(url) ?? []
  const end = rest.search(/[?#]/)
  const place = end < 0 ? rest : rest.slice(0, end)
  const query = end < 0 ? '' : rest.slice(end)
  // What follows these is a file, and files may have an @ in their names.
  const isFile = /^(sqlite|holdfast\+unix):$/i.test(scheme)
  return scheme + (isFile ? place : redactPlace(place)) + redactQuery(query)
}

/** Whether showing the URL as it is would show a secret. */
export function hasSecret(url: string): boolean {
  return redact(url) !== url
}

const HIDDEN = '***'
const USER_INFO = /^([^:@/]*):([^@/]*)@(?=[^@]*$)/

function redactPlace(place: string): string {
  if (!place.includes('@')) return place
  // Several hosts, each with its own user: h1,h2 or u:p@h1,u:p@h2/path.
  const hosts = place.split(',')
  const tidy = hosts.every((host) => !host.includes('@') || /^[^@/]*@[^@/]+(\/[^@]*)?$/.test(host))
  const first = hosts[0] ?? ''
  // A piece before the first @ belongs to a password that has a comma in it, not to a host.
  if (tidy && (first.includes('@') || hosts.length === 1)) {
    return hosts.map((host) => host.replace(USER_INFO, (_, user: string) => `${user}:${HIDDEN}@`)).join(',')
  }
  // Not written as it should be (an @ or a / in the password): better to hide a host than to show a part of a secret.
  return `${HIDDEN}@${place.slice(place.lastIndexOf('@') + 1)}`
}

function redactQuery(query: string): string {
  return query.replace(/([?&#][^=&#]*(?:pass|pwd|secret|token|auth|key)[^=&#]*=)[^&#]*/gi, `$1${HIDDEN}`)
}
