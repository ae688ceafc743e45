import type { Store } from '../../core/contract.ts'
import type { Tidied, TidyOptions } from '../../stores/sql/tidy.ts'
import { storeAt } from '../connect.ts'
import { parseDuration } from '../duration.ts'
import { EXIT, UsageError } from '../exit.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import { print, printJson } from '../table.ts'

const options = {
  idle: { value: 'TIME', help: 'only names without a grant for that long; default 1h' },
  json: { help: 'print JSON' },
  ...STORE_OPTIONS,
} as const

const tidy: Command = command({
  spec: {
    name: 'tidy',
    usage: '[URL] [options]',
    summary: 'Forgets names that nobody uses any more, in the table of a database store',
    details:
      'A little at a time, so that nobody waits for it. The stores do it themselves while new names come; this is for what\n' +
      'is left when none do any more.',
    options,
    words: [0, 1],
    examples: ['holdfast tidy sqlite:locks.db', 'holdfast tidy --idle 1d'],
  },

  async run({ options: given, words: [url] }) {
    const idle = parseDuration('--idle', given.idle ?? '1h')
    const address = storeAddress(given, url)
    const store = await storeAt(address)
    try {
      if (!canTidy(store)) {
        throw new UsageError(
          `${address.shown} keeps nothing of names that nobody uses: there is nothing to tidy.`,
        )
      }
      const tidied = await store.tidy({ idle })
      if (given.json === true) printJson(tidied)
      else print(`${tidied.removed} of ${tidied.looked} names were forgotten.`)
      return EXIT.ok
    } finally {
      await store.close()
    }
  },
})

export default tidy

function canTidy(store: Store): store is Store & { tidy(options: TidyOptions): Promise<Tidied> } {
  return 'tidy' in store
}
