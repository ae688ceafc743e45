/** `acquire`: take, renew and release. `read`: inspect, list, events. `admin`: all of it. */
export type Right = 'acquire' | 'read' | 'force-release' | 'admin'

export const RIGHTS: readonly Right[] = ['acquire', 'read', 'force-release', 'admin']

/** Who asks: a name for people, and what it may do with which names. */
export class Principal {
  readonly name: string
  /** What ends when the token is taken away, or may do other things than before: who it was for asks again. */
  readonly whenChanged: Set<() => void> = new Set()
  private rights: ReadonlySet<Right>
  private prefixes: readonly string[]
  private everything: boolean

  constructor(name: string, rights: Iterable<Right>, prefixes: readonly string[]) {
    this.name = name
    this.rights = new Set(rights)
    this.prefixes = prefixes
    this.everything = prefixes.includes('*')
  }

  /** From now on it may do what the other one may; null: nothing. */
  become(other: Principal | null): void {
    if (other?.words === this.words) return
    this.rights = other?.rights ?? new Set()
    this.prefixes = other?.prefixes ?? []
    this.everything = other?.everything ?? false
    for (const end of this.whenChanged) end()
  }

  private get words(): string {
    return JSON.stringify([[...this.rights].sort(), [...this.prefixes].sort()])
  }

  /** Prefixes whose names it may read. */
  get readable(): readonly string[] {
    return this.rights.has('read') || this.rights.has('admin') ? this.prefixes : []
  }

  may(right: Right, name: string): boolean {
    if (!this.rights.has(right) && !this.rights.has('admin')) return false
    return this.everything || this.prefixes.some((prefix) => isWithin(name, prefix))
  }

  /** For what is not about one name. */
  mayEverywhere(right: Right): boolean {
    return this.everything && (this.rights.has(right) || this.rights.has('admin'))
  }
}

/** Without tokens, whoever can connect may do everything: that is why the server then listens to this machine only. */
export const ANYBODY: Principal = new Principal('anybody', ['admin'], ['*'])

/** By whole segments: `jobs` is `jobs`, `jobs/nightly` and `jobs:nightly`, and never `jobs-of-others`. */
function isWithin(name: string, prefix: string): boolean {
  if (!name.startsWith(prefix)) return false
  return name.length === prefix.length || isSeparator(prefix.at(-1)) || isSeparator(name[prefix.length])
}

function isSeparator(char: string | undefined): boolean {
  return char === '/' || char === ':'
}

/** Who gave no token where none is needed. */
export const NOBODY: Principal = new Principal('nobody', [], [])
