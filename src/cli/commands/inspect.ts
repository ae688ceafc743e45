import { claimRows, kindOf, lockJson } from '../lock-view.ts'
import { withStore } from '../connect.ts'
import { EXIT } from '../exit.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import { paint, plain, print, printJson, table } from '../table.ts'

const options = {
  json: { help: 'print JSON; times in milliseconds' },
  ...STORE_OPTIONS,
} as const

const inspect: Command = command({
  spec: {
    name: 'inspect',
    usage: 'NAME [options]',
    summary: 'Shows who holds a lock and who waits for it',
    options,
    words: [1, 1],
    examples: ['holdfast inspect deploy', 'holdfast inspect deploy --json | jq .holders'],
  },

  async run({ options: given, words: [name = ''] }) {
    const { info, store } = await withStore(storeAddress(given), async (holdfast) => ({
      info: await holdfast.inspect(name),
      store: holdfast.store,
    }))
    const rows = claimRows(info, store)
    if (given.json === true) printJson(lockJson(info, store))
    else if (rows.length === 0) print(`Nobody holds "${plain(name)}" or waits for it.`)
    else {
      print(`${paint('bold', plain(name))} (${kindOf(info)})\n`)
      print(table(['STATE', 'OWNER', 'TAKES', 'TOKEN', 'FOR', 'EXPIRES IN'], rows))
    }
    return EXIT.ok
  },
})

export default inspect
