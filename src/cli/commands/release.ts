import { CommandError, EXIT, UsageError } from '../exit.ts'
import { forceRelease } from '../force.ts'
import { giveBack, leasesOn } from '../keeper/client.ts'
import { isLeaseId, leasesHere } from '../keeper/folder.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import { plain, print, printJson } from '../table.ts'

const options = {
  force: { help: 'take the lock away from whoever holds it, at the store' },
  reason: { value: 'TEXT', help: 'why; needed with --force' },
  json: { help: 'print JSON' },
  ...STORE_OPTIONS,
} as const

const release: Command = command({
  spec: {
    name: 'release',
    usage: 'LEASE | NAME | --force NAME --reason TEXT',
    summary: 'Gives back a lock that "holdfast acquire" took',
    details:
      'Exit code 79 says that the lock was lost before: others may have been at work at the same time. With --force,\n' +
      'takes a lock away from its holders, wherever they are; their next token is larger, so a resource that checks tokens\n' +
      'refuses what the old holders still try.',
    options,
    words: [1, 1],
    examples: [
      'holdfast release "$lease"',
      'holdfast release deploy',
      'holdfast release --force deploy --reason "web7 is down, see ticket 4711"',
    ],
  },

  async run({ options: given, words: [what = ''] }) {
    if (given.force !== true) {
      if (given.reason !== undefined) throw new UsageError('--reason belongs to --force.')
      return give(what, given.json === true)
    }
    const reason = given.reason?.trim() ?? ''
    if (reason === '') throw new UsageError('--force needs --reason TEXT: somebody will want to know.')
    const taken = await forceRelease(storeAddress(given), what, reason)
    if (given.json === true) printJson({ name: what, reason, taken })
    else if (taken.length === 0) print(`Nobody holds "${plain(what)}".`)
    else
      for (const { owner, token } of taken) print(plain(`Took "${what}" away from ${owner}, token ${token}.`))
    return EXIT.ok
  },
})

export default release

async function give(what: string, json: boolean): Promise<number> {
  const leases = await leasesMeant(what)
  const [lease, ...others] = leases
  if (others.length > 0) {
    throw new UsageError(
      `There are ${leases.length} leases on "${what}" here; say which: ${leases.join(', ')}`,
    )
  }
  const report = lease === undefined ? undefined : await giveBack(lease)
  const outcome = report?.outcome ?? 'not-held'
  if (json) printJson({ lease: lease ?? (isLeaseId(what) ? what : null), outcome })
  switch (outcome) {
    case 'released':
      return EXIT.ok
    case 'lost':
      throw new CommandError(
        `The lock was lost before it was released. Others may have held it since.`,
        EXIT.lockLost,
      )
    case 'not-held':
      throw new CommandError(
        `Nothing here holds "${what}". It was released, or its script has ended.`,
        EXIT.lockLost,
      )
    case 'unknown':
      throw new CommandError('The store did not answer. The lock ends by itself.', EXIT.storeUnavailable)
  }
}

/** A lock may have a name that looks like a lease. */
async function leasesMeant(what: string): Promise<readonly string[]> {
  if (!isLeaseId(what)) return leasesOn(what)
  // Of a lease that is over, keepers that do not answer say nothing.
  return leasesHere().includes(what) ? [what] : leasesOn(what).catch(() => [])
}
