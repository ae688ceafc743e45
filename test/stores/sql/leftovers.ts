interface StoredRow {
  readonly name: Buffer | string
  readonly claim: Buffer | string | null
  readonly queue: string | null
}

/** Holders and waiters that rows still have. Withdrawn claims are remembered on purpose, and so is the row itself. */
export function leftoversOf(rows: readonly unknown[]): string[] {
  return (rows as readonly StoredRow[]).flatMap(({ name, claim, queue }) => {
    const { holders, waiters } = JSON.parse(queue ?? '{"holders":[],"waiters":[]}') as {
      holders: unknown[]
      waiters: unknown[]
    }
    const left: string[] = []
    if (claim !== null) left.push(`${String(name)} is held`)
    if (holders.length > 0) left.push(`${String(name)} has ${holders.length} more holders`)
    if (waiters.length > 0) left.push(`${String(name)} has ${waiters.length} waiters`)
    return left
  })
}
