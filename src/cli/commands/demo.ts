import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeAt } from '../connect.ts'
import type { HandOver, Sale } from '../demo/crew.ts'
import { Crew } from '../demo/crew.ts'
import { Progress } from '../demo/progress.ts'
import type { SellerOrder } from '../demo/seller.ts'
import { Train } from '../demo/train.ts'
import { showDuration } from '../duration.ts'
import { EXIT, UsageError } from '../exit.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import type { StoreAddress } from '../store-option.ts'
import { paint, print, printJson, table } from '../table.ts'

const options = {
  sellers: { value: 'N', help: 'how many processes sell; default 5' },
  tickets: { value: 'N', help: 'how many seats the train has; default 100' },
  json: { help: 'print JSON' },
  ...STORE_OPTIONS,
} as const

/** How long the lock of a seller that was killed stays; nobody wants to look at a demo for 15 seconds. */
const TTL = 2000

const demo: Command = command({
  spec: {
    name: 'demo',
    usage: '[options]',
    summary: 'Sells train tickets from several processes, without and with a lock',
    details:
      'Starts a lock server of its own unless a store is given. At last it kills a seller in the middle of a sale and\n' +
      'shows who goes on. Exit code 1 when a seat was sold twice under the lock.',
    options,
    words: [0, 0],
    examples: ['holdfast demo', 'HOLDFAST_URL=redis://localhost holdfast demo'],
  },

  async run({ options: given }) {
    const sellers = count('--sellers', given.sellers ?? '5', 2)
    const seats = count('--tickets', given.tickets ?? '100', 10)
    await using store = await theStore(given)
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
    try {
      const show = given.json !== true
      if (show)
        print(
          `${sellers} processes sell the ${seats} seats of one train.\nThe locks are at ${store.address.shown}.\n`,
        )
      const stage = { sellers, seats, file: join(folder, 'train'), show }
      const { address } = store
      const runs = [
        await play('without a lock', stage, null),
        await play('with holdfast', stage, address),
        await play('a seller killed', stage, address, Math.floor(seats * 0.4)),
      ]
      if (show) tellResults(runs, seats)
      else printJson(runs.map(jsonOf))
      return runs.slice(1).every(({ oversold }) => oversold === 0) ? EXIT.ok : EXIT.failed
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
})

export default demo

interface Stage {
  readonly sellers: number
  readonly seats: number
  readonly file: string
  readonly show: boolean
}

interface Result {
  readonly label: string
  readonly sold: number
  /** Sales of a seat that had been sold already. */
  readonly oversold: number
  readonly perSecond: number
  readonly longestWait: number
  readonly handOver?: HandOver & { readonly next: Sale }
}

async function play(
  label: string,
  stage: Stage,
  address: SellerOrder['address'],
  killAfter?: number,
): Promise<Result> {
  const { sellers, seats, file, show } = stage
  new Train(file).open(seats)
  const progress = new Progress(label, seats)
  const crew = await Crew.start(sellers, () => {
    if (show) progress.sale()
  })
  try {
    const took = await crew.work({ file, address, ttl: TTL }, killAfter)
    if (show) progress.end()
    const { sales, handOver } = crew
    const next = handOver === undefined ? undefined : sales.find(({ at }) => at > handOver.at)
    return {
      label,
      sold: sales.length,
      oversold: sales.length - new Set(sales.map(({ seat }) => seat)).size,
      perSecond: sales.length / (took / 1000),
      longestWait: Math.max(0, ...sales.map(({ waited }) => waited)),
      ...(handOver === undefined || next === undefined ? {} : { handOver: { ...handOver, next } }),
    }
  } finally {
    crew.dismiss()
  }
}

function tellResults(runs: readonly Result[], seats: number): void {
  for (const { handOver } of runs) {
    if (handOver === undefined) continue
    const { killed, token, next, at } = handOver
    print(
      `\nSeller ${killed + 1} was killed in the middle of a sale, holding token ${token}.` +
        `\nSeller ${next.seller + 1} had the lock ${showDuration(next.at - at)} later, with token ${next.token}: ` +
        `the dead one's lease (${showDuration(TTL)}) had to end first.`,
    )
  }
  print('')
  print(
    table(
      ['RUN', 'SOLD', 'OVERSOLD', 'SECTIONS/S', 'LONGEST WAIT'],
      runs.map(({ label, sold, oversold, perSecond, longestWait }) => [
        label,
        `${sold} of ${seats}`,
        { text: String(oversold), colour: oversold > 0 ? 'red' : 'green' },
        perSecond.toFixed(0),
        longestWait === 0 ? '' : showDuration(longestWait),
      ]),
    ),
  )
  const [without, ...locked] = runs
  const safe = locked.every(({ oversold }) => oversold === 0)
  print('')
  if (!safe)
    print(paint('red', 'A seat was sold twice under the lock. That must not happen: please report it.'))
  else if ((without?.oversold ?? 0) > 0)
    print('Without a lock, seats are sold several times over. With holdfast, each once.')
  else print('This time nothing went wrong without a lock either. That was luck: try again.')
}

function jsonOf({ handOver, ...result }: Result): object {
  if (handOver === undefined) return result
  const { killed, token, at, next } = handOver
  return {
    ...result,
    handOver: { killed, token, next: next.seller, nextToken: next.token, after: next.at - at },
  }
}

interface DemoStore extends AsyncDisposable {
  readonly address: StoreAddress
}

/** The store that was asked for, or a lock server that lives as long as the demo. */
async function theStore(given: Parameters<typeof storeAddress>[0]): Promise<DemoStore> {
  const asked = given.store ?? given['store-file'] ?? process.env['HOLDFAST_URL']
  if (asked !== undefined && asked !== '') {
    const address = storeAddress(given)
    // Better to hear now that it cannot be reached than from five sellers.
    const store = await storeAt(address)
    await store.close()
    if (store.capabilities.reach === 'process')
      throw new UsageError(`${address.shown} cannot be shared between processes.`)
    return { address, [Symbol.asyncDispose]: () => Promise.resolve() }
  }
  const { startServer } = await import('../../server/index.ts')
  const server = await startServer({ listen: '127.0.0.1:0' })
  await server.ready
  const { url } = server
  return {
    address: { url, shown: `${url}, a lock server started for this` },
    [Symbol.asyncDispose]: () => server.close(),
  }
}

function count(option: string, text: string, least: number): number {
  const number = Number(text)
  if (!Number.isInteger(number) || number < least || number > 10_000) {
    throw new UsageError(`${option} takes a number from ${least}; got "${text}"`)
  }
  return number
}
