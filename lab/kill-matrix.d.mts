export interface Edit {
  readonly file: string
  readonly find: string
  readonly replace: string
}

export interface Mutant {
  readonly id: string
  readonly bugClass: string
  readonly edits: readonly Edit[]
  readonly scenario: string
  readonly check: string
  readonly seeds: number
  readonly seed?: number
}

export interface Caught {
  readonly mutant: Mutant
  /** Null: it was not caught. */
  readonly seed: number | null
  readonly why?: string
}

export interface Broken {
  readonly scenario: string
  readonly seed: number
  readonly check: string
}

export const mutants: readonly Mutant[]
export function build(to: string): void
export function edited(text: string, edit: Edit): string
export function killAll(options: {
  readonly dist: string
  readonly only?: string
  readonly onResult?: (caught: Caught) => void
}): Promise<Caught[]>
export function checkUnchanged(dist: string, caught: readonly Caught[]): Promise<Broken[]>
export function withTable(page: string): string
