import { setTimeout as sleep } from 'node:timers/promises'
import type { Holdfast, LockInfo } from '../../locks/holdfast.ts'
import { kindOf, lockJson, showAge } from '../lock-view.ts'
import type { StoreKind } from '../lock-view.ts'
import { withStore } from '../connect.ts'
import { parseDuration } from '../duration.ts'
import { EXIT, explain, UsageError } from '../exit.ts'
import { Interrupt } from '../interrupt.ts'
import { mayPass } from '../reach.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import { coloured, note, paint, print, printJson, table } from '../table.ts'

const options = {
  watch: { short: 'w', help: 'show it again and again until Ctrl-C' },
  every: { value: 'TIME', help: 'how often with --watch; default 1s' },
  limit: { value: 'N', help: 'at most this many names; default 100' },
  json: { help: 'print JSON; with --watch, one line each time' },
  ...STORE_OPTIONS,
} as const

/** Names are asked about one by one: enough at once to be quick, few enough to be no burden. */
const AT_ONCE = 16
/** Nobody reads faster, and the store has other things to do. */
const SHORTEST_MS = 10
const CLEAR = '\u001b[H\u001b[2J'

const ls: Command = command({
  spec: {
    name: 'ls',
    usage: '[PREFIX] [options]',
    summary: 'Lists the locks that are held or waited for',
    options,
    words: [0, 1],
    examples: ['holdfast ls', 'holdfast ls train: --watch', 'holdfast ls --json | jq -r ".locks[].name"'],
  },

  async run({ options: given, words: [prefix = ''] }) {
    const limit = given.limit === undefined ? 100 : Number(given.limit)
    if (!Number.isInteger(limit) || limit < 1)
      throw new UsageError(`--limit takes a number from 1; got "${given.limit}"`)
    const every = parseDuration('--every', given.every ?? '1s')
    if (every < SHORTEST_MS)
      throw new UsageError(`--every takes at least ${SHORTEST_MS}ms; got "${given.every}"`)
    const show = given.json === true ? printJson : showLocks
    return withStore(storeAddress(given), async (holdfast) => {
      if (given.watch !== true) {
        show(await look(holdfast, prefix, limit))
        return EXIT.ok
      }
      const interrupt = new Interrupt()
      try {
        let state: 'new' | 'there' | 'away' = 'new'
        while (!interrupt.signal.aborted) {
          try {
            const looking = look(holdfast, prefix, limit)
            const seen = await interrupt.orArrival(looking)
            if (seen === undefined) {
              // A store that does not answer is not waited for.
              looking.catch(() => {})
              break
            }
            state = 'there'
            if (given.json !== true) print(coloured(process.stdout) ? CLEAR : `\n${new Date().toISOString()}`)
            show(seen)
          } catch (error) {
            // The first look says what is wrong. Later, a store that is away may be back soon, as after a restart.
            if (state === 'new' || !mayPass(error)) throw error
            if (state === 'there') note(`${explain(error)}\n  trying again`)
            state = 'away'
          }
          await sleep(every, undefined, { signal: interrupt.signal }).catch(() => {})
        }
        return EXIT.ok
      } finally {
        interrupt.stop()
      }
    })
  },
})

export default ls

interface Seen {
  readonly locks: readonly LockInfo[]
  /** There are more than were asked for. */
  readonly more: boolean
  readonly store: StoreKind
}

async function look(holdfast: Holdfast, prefix: string, limit: number): Promise<Seen & { toJSON(): object }> {
  const names: string[] = []
  let cursor: string | undefined
  do {
    const page = await holdfast.list({
      prefix,
      limit: Math.min(limit - names.length, 1000),
      ...(cursor === undefined ? {} : { cursor }),
    })
    names.push(...page.names)
    cursor = page.cursor
  } while (cursor !== undefined && names.length < limit)
  const locks: LockInfo[] = []
  for (let from = 0; from < names.length; from += AT_ONCE) {
    const some = await Promise.all(names.slice(from, from + AT_ONCE).map((name) => holdfast.inspect(name)))
    // What was released since the names were listed is not held any more.
    locks.push(...some.filter(({ holders, waiters }) => holders.length + waiters.length > 0))
  }
  const more = cursor !== undefined
  const { store } = holdfast
  return { locks, more, store, toJSON: () => ({ locks: locks.map((info) => lockJson(info, store)), more }) }
}

function showLocks({ locks, more, store }: Seen): void {
  if (locks.length === 0) return print('No locks are held.')
  const rows = locks.map((info) => {
    const [first, ...others] = info.holders
    const owner =
      first === undefined ? '' : first.owner + (others.length === 0 ? '' : ` and ${others.length} more`)
    return [
      info.name,
      kindOf(info),
      owner,
      String(first?.token ?? ''),
      showAge(first?.token, store),
      String(info.waiters.length),
    ]
  })
  const { isTTY, columns } = process.stdout
  print(table(['NAME', 'KIND', 'HELD BY', 'TOKEN', 'FOR', 'WAITING'], rows, isTTY ? columns : undefined))
  if (more) print(paint('dim', 'There are more: --limit N, or a PREFIX.'))
}
