/**
 * The names under which a guarded transaction of this process is open. Its lock on the row makes renewals of that row
 * wait, so they must not take those of other names with them. One list for the process, whatever the number of stores.
 */
const open = new Map<string, number>()

export function isGuarded(name: string): boolean {
  return open.size > 0 && open.has(name)
}

export function enterGuard(name: string): void {
  open.set(name, (open.get(name) ?? 0) + 1)
}

export function leaveGuard(name: string): void {
  const left = (open.get(name) ?? 1) - 1
  if (left === 0) open.delete(name)
  else open.set(name, left)
}
