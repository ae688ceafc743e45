/** Groups of an IPv6 address that name the network: one home has all the others. */
const NETWORK = 4
const GROUPS = 8

/** Where an address belongs to, for counting: itself, or its /64. */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address
  const [head = '', tail] = address.replace(/%.*$/, '').split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Array.from({ length: GROUPS - first.length - last.length }, () => '0')
  return `${[...first, ...zeros, ...last].slice(0, NETWORK).join(':')}::/64`
}
