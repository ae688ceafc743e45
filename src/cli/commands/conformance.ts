import type { Target } from '../../testkit/case.ts'
import { conformance as allCases } from '../../testkit/conformance.ts'
import { documented } from '../../testkit/documented.ts'
import { runCase } from '../../testkit/run-case.ts'
import type { CaseResult } from '../../testkit/run-case.ts'
import { sharedStore } from '../../testkit/shared-store.ts'
import { storeAt } from '../connect.ts'
import { EXIT, explain, UsageError } from '../exit.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import type { StoreAddress } from '../store-option.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import { paint, print, printJson } from '../table.ts'

const options = {
  only: { value: 'TEXT', help: 'only cases whose id contains this' },
  json: { help: 'print JSON, one line a case' },
  ...STORE_OPTIONS,
} as const

const conformance: Command = command({
  spec: {
    name: 'conformance',
    usage: '[URL] [options]',
    summary: 'Runs the conformance cases against a store',
    details:
      'Every case uses names of its own, so the store may be in use meanwhile. Cases that need what the store does not\n' +
      'have, that its page in the docs excepts, or that need a server which can be restarted, are left out and counted. Exit\n' +
      'code 1 when a case fails.',
    options,
    words: [0, 1],
    examples: ['holdfast conformance redis://localhost', 'holdfast conformance memory: --only tokens'],
  },

  async run({ options: given, words: [url] }) {
    const { only = '' } = given
    const cases = allCases().filter(({ id }) => id.includes(only))
    if (cases.length === 0) throw new UsageError(`No case has "${only}" in its id.`)
    const target = await targetOf(storeAddress(given, url))
    const count = { passed: 0, failed: 0, 'not applicable': 0 }
    for (const testCase of cases) {
      const began = performance.now()
      const result = await runCase(testCase, target)
      count[result.status]++
      const { id, title } = testCase
      const took = Math.round(performance.now() - began)
      if (given.json === true) printJson({ id, title, took, ...jsonOf(result) })
      else show(`${id}: ${title}`, result)
    }
    if (given.json !== true) {
      print(`\n${count.passed} passed, ${count.failed} failed, ${count['not applicable']} not applicable`)
    }
    return count.failed === 0 ? EXIT.ok : EXIT.failed
  },
})

export default conformance

async function targetOf(address: StoreAddress): Promise<Target> {
  const { shown } = address
  const store = await storeAt(address)
  const { kind, capabilities } = store
  // A store inside this process cannot be opened twice: its clients share it.
  if (capabilities.reach === 'process') return { name: shown, createStore: () => sharedStore(store) }
  await store.close()
  return {
    ...documented[kind],
    name: shown,
    createStore: () => storeAt(address),
    // Other processes are told over a channel of their own: nothing of it is an argument.
    module: () => ({
      url: new URL('../connect.js', import.meta.url).href,
      export: storeAt.name,
      args: address,
    }),
  }
}

function show(what: string, result: CaseResult): void {
  switch (result.status) {
    case 'passed':
      return print(`${paint('green', 'ok  ')}  ${what}`)
    case 'not applicable':
      return print(paint('dim', `n/a   ${what} (${result.reason})`))
    case 'failed':
      return print(
        `${paint('red', 'FAIL')}  ${what}\n      ${explain(result.error).replaceAll('\n', '\n      ')}`,
      )
  }
}

function jsonOf(result: CaseResult): object {
  return result.status === 'failed' ? { status: result.status, error: explain(result.error) } : result
}
