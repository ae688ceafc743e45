import { describe, expect, it } from 'vitest'

import type { Abilities } from '../../../src/testkit/case.ts'
import { conformance } from '../../../src/testkit/conformance.ts'
import { nodeTestConformance } from '../../../src/testkit/node-test.ts'
import { vitestConformance } from '../../../src/testkit/vitest.ts'
import { changed, plainStore, virtualTarget } from './lesser-stores.ts'

const plainAbilities: Abilities = {
  queue: false,
  shared: false,
  permits: false,
  downgrade: false,
  wakeups: 'poll',
  fencing: 'monotonic',
  reach: 'process',
}

type Body = (context: { skip(reason?: string): void }) => Promise<void>

/** A runner that only writes down what it is given. */
class Notebook {
  readonly suites: string[] = []
  readonly tests = new Map<string, Body>()
  readonly describe = (name: string, body: () => void): void => {
    this.suites.push(name)
    body()
  }
  readonly vitestIt = (name: string, body: Body): void => void this.tests.set(name, body)
  readonly nodeIt = (name: string, _: object, body: Body): void => void this.tests.set(name, body)

  /** Runs one test by its case's id; gives the reason if it was skipped. */
  async run(id: string): Promise<string | undefined> {
    const [, body] = [...this.tests].find(([name]) => name.startsWith(`${id}: `)) ?? []
    let skipped: string | undefined
    await body?.({ skip: (reason) => void (skipped = reason) })
    return skipped
  }
}

const notebooks: readonly [string, (target: Parameters<typeof vitestConformance>[1]) => Notebook][] = [
  [
    'vitest',
    (target) => {
      const notebook = new Notebook()
      vitestConformance({ describe: notebook.describe, it: notebook.vitestIt }, target)
      return notebook
    },
  ],
  [
    'node:test',
    (target) => {
      const notebook = new Notebook()
      nodeTestConformance({ describe: notebook.describe, it: notebook.nodeIt }, target)
      return notebook
    },
  ],
]

describe.each(notebooks)('the glue for %s', (_, open) => {
  it('makes a test of every case that the target has the means for', () => {
    const notebook = open(virtualTarget(1))
    expect(notebook.suites).toEqual(['memory keeps the store contract'])
    const more = ['processes', 'proxy', 'restart']
    const possible = conformance().filter(({ needs }) => !needs.some((need) => more.includes(need)))
    expect(notebook.tests.size).toBe(possible.length)
  })

  it('makes no test of what a store is stated not to do', async () => {
    const notebook = open({ ...virtualTarget(1, plainStore), abilities: plainAbilities })
    const ids = [...notebook.tests.keys()].map((name) => name.split(':')[0])
    expect(ids).not.toContain('queue/fifo')
    const skipped = []
    for (const id of ids) skipped.push(await notebook.run(id ?? ''))
    expect(skipped.filter((reason) => reason !== undefined)).toEqual([])
  })

  it('fails where what is stated of a store is not true', async () => {
    const target = { ...virtualTarget(1), abilities: plainAbilities }
    await expect(open(target).run('claim/free')).rejects.toThrow(
      'states queue: false, and its store has queue: true',
    )
  })

  it('passes what passes and skips, with the reason, what does not apply', async () => {
    const notebook = open(virtualTarget(1, plainStore))
    expect(await notebook.run('claim/free')).toBeUndefined()
    expect(await notebook.run('queue/fifo')).toBe('not applicable: needs queue')
  })

  it('fails what never ends, by the name of the case', async () => {
    const silent = virtualTarget(1, (store) => changed(store, { claim: () => new Promise(() => {}) }))
    await expect(open(silent).run('claim/free')).rejects.toThrow('claim/free never came to its end')
  })

  it('fails what fails', async () => {
    const broken = virtualTarget(1, (store) => changed(store, { claim: () => ({ kind: 'busy' }) }))
    await expect(open(broken).run('claim/free')).rejects.toThrow('is granted at once')
  })
})
