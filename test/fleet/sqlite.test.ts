import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import { hasSqlite } from '../stores/sqlite/databases.ts'
import { problemsOfFleet } from './one-fleet.ts'

/** In a file of its own, for test/stores/sqlite/matrix.test.ts runs it on Nodes that have SQLite. */
describe.skipIf(!hasSqlite())('processes of an earlier build and of the present one', () => {
  it('share the locks of an SQLite file', { timeout: 120_000 }, async () => {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-fleet-'))
    const end = (): void => rmSync(dir, { recursive: true, force: true })
    expect(await problemsOfFleet(() => ({ url: `sqlite:${join(dir, 'locks.db')}`, end }))).toEqual([])
  })
})
