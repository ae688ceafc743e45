/** `acquire`: take, renew and release. `read`: inspect, list, events. `admin`: all of it. */
export type Right = 'acquire' | 'read' | 'force-release' | 'admin'

export const RIGHTS: readonly Right[] = ['acquire', 'read', 'force-release', 'admin']

/**
 * By whole segments: `jobs` is `jobs`, `jobs/nightly` and `jobs:nightly`, and never `jobs-of-others`. There may be thousands, and each
 * event is looked at for each reader: a name is looked up by its beginnings, not compared with all of them.
 */
class Prefixes {
  readonly all: readonly string[]
  readonly everything: boolean
  private readonly known: ReadonlySet<string>
  private readonly lengths: ReadonlySet<number>

  constructor(all: readonly string[]) {
    this.all = all
    this.everything = all.includes('*')
    this.known = new Set(all)
    this.lengths = new Set(all.map(({ length }) => length))
  }

  include(name: string): boolean {
    if (this.everything) return true
    for (const length of this.lengths) {
      const whole = length === name.length || isSeparator(name[length - 1]) || isSeparator(name[length])
      if (whole && length <= name.length && this.known.has(name.slice(0, length))) return true
    }
    return false
  }
}

function isSeparator(char: string | undefined): boolean {
  return char === '/' || char === ':'
}

/** Who asks: a name for people, and what it may do with which names. */
export class Principal {
  readonly name: string
  /** What ends when the token is taken away, or may do other things than before: who it was for asks again. */
  readonly whenChanged: Set<() => void> = new Set()
  private rights: ReadonlySet<Right>
  private prefixes: Prefixes

  constructor(name: string, rights: Iterable<Right>, prefixes: readonly string[]) {
    this.name = name
    this.rights = new Set(rights)
    this.prefixes = new Prefixes(prefixes)
  }

  /** From now on it may do what the other one may; null: nothing. */
  become(other: Principal | null): void {
    if (other?.words === this.words) return
    this.rights = other?.rights ?? new Set()
    this.prefixes = other?.prefixes ?? new Prefixes([])
    for (const end of this.whenChanged) end()
  }

  private get words(): string {
    return JSON.stringify([[...this.rights].sort(), [...this.prefixes.all].sort()])
  }

  /** Prefixes whose names it may read. */
  get readable(): readonly string[] {
    return this.rights.has('read') || this.rights.has('admin') ? this.prefixes.all : []
  }

  may(right: Right, name: string): boolean {
    if (!this.rights.has(right) && !this.rights.has('admin')) return false
    return this.prefixes.include(name)
  }

  /** For what is not about one name. */
  mayEverywhere(right: Right): boolean {
    return this.prefixes.everything && (this.rights.has(right) || this.rights.has('admin'))
  }
}

/** Without tokens, whoever can connect may do everything: that is why the server then listens to this machine only. */
export const ANYBODY: Principal = new Principal('anybody', ['admin'], ['*'])

/** Who gave no token where none is needed. */
export const NOBODY: Principal = new Principal('nobody', [], [])
