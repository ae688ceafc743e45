import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, it } from 'vitest'

const src = fileURLToPath(new URL('../../src', import.meta.url))

/** Every file that is loaded with this one. */
function loadedWith(file: string, seen: Set<string> = new Set()): Set<string> {
  if (seen.has(file)) return seen
  seen.add(file)
  const imports = readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )[^;]*?from '(\.[^']+)'/gm)
  for (const [, path = ''] of imports) loadedWith(join(dirname(file), path), seen)
  return seen
}

it('holdfast/testing loads the clock of the testkit, and nothing else of it', () => {
  const files = [...loadedWith(join(src, 'testing/index.ts'))].map((file) => file.slice(src.length + 1))
  expect(files).toContain('locks/holdfast.ts')
  expect(files.filter((file) => /^(testkit|lab|server|cli)\//.test(file)).sort()).toEqual([
    'testkit/random.ts',
    'testkit/timer-heap.ts',
    'testkit/virtual-env.ts',
  ])
})

const stores = readdirSync(join(src, 'stores')).filter((name) =>
  existsSync(join(src, `stores/${name}/index.ts`)),
)

it.each(['index.ts', 'store.ts', ...stores.map((name) => `stores/${name}/index.ts`)])(
  '%s loads nothing of the server, the command, the lab or the testkit',
  (entry) => {
    const files = [...loadedWith(join(src, entry))].map((file) => file.slice(src.length + 1))
    expect(files.length).toBeGreaterThan(5)
    expect(files.filter((file) => /^(testing|testkit|lab|server|cli|recipes)\//.test(file))).toEqual([])
  },
)
