import type { FencedWrite } from '../../testkit/checkers/fenced-resource.ts'
import type { Update } from '../../testkit/checkers/lost-update.ts'

export interface Reading {
  readonly fenced: number | 'refused'
  readonly plain: number
}

class Cell {
  value = 0
  highest = -1n
  readonly updates: Update[] = []

  /** One more than was read, whatever it is by now. */
  set(read: number): void {
    this.value = read + 1
    this.updates.push({ read, wrote: read + 1, outcome: 'stored' })
  }
}

/** What the locks guard: a counter per name, once behind a check of tokens and once without. */
export class Resource {
  /** Every decision of the guarded counters, readings too: they raise the fence. */
  readonly decisions: FencedWrite[] = []
  private readonly fenced = new Map<string, Cell>()
  private readonly plain = new Map<string, Cell>()

  read(name: string, token: bigint): Reading {
    const plain = this.cell('plain', name).value
    return { fenced: this.admit(name, token) ? this.cell('fenced', name).value : 'refused', plain }
  }

  /** Returns whether the guarded counter took it; the other one takes everything. */
  write(name: string, token: bigint, read: Reading): boolean {
    this.cell('plain', name).set(read.plain)
    if (read.fenced === 'refused' || !this.admit(name, token)) return false
    this.cell('fenced', name).set(read.fenced)
    return true
  }

  updatesOf(
    which: 'fenced' | 'plain',
    name: string,
  ): { readonly updates: readonly Update[]; readonly value: number } {
    return this.cell(which, name)
  }

  private admit(name: string, token: bigint): boolean {
    const cell = this.cell('fenced', name)
    const accepted = token >= cell.highest
    if (accepted) cell.highest = token
    this.decisions.push({ name, token, accepted })
    return accepted
  }

  private cell(which: 'fenced' | 'plain', name: string): Cell {
    const cells = this[which]
    const known = cells.get(name)
    if (known !== undefined) return known
    const made = new Cell()
    cells.set(name, made)
    return made
  }
}
