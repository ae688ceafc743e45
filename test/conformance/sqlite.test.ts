import { afterAll, describe, it } from 'vitest'

import { vitestConformance } from 'holdfast/testkit'

import { openSqliteStore } from '../../src/stores/sqlite/index.ts'
import { folder, hasSqlite } from '../stores/sqlite/databases.ts'
import { everything } from './abilities.ts'

// On a Node without SQLite these run through test/stores/sqlite/matrix.test.ts.
describe.skipIf(!hasSqlite())('SQLite', () => {
  const { url, remove } = folder()
  afterAll(remove)

  vitestConformance(
    { describe, it },
    {
      name: 'a file',
      abilities: { ...everything, wakeups: 'poll', reach: 'machine' },
      createStore: () => openSqliteStore(url),
      module: () => ({
        url: new URL('../../dist/stores/sqlite/open.js', import.meta.url).href,
        export: 'openSqliteStore',
        args: url,
      }),
    },
  )
})
