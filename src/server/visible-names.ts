import type { ListPage, ListQuery, Store, Unknown } from '../core/contract.ts'
import type { Principal } from './rights.ts'
import { Cursors } from './cursors.ts'
import { Failure } from './failure.ts'
import type { Looks } from './looks.ts'

/** One name, or all that begin with a prefix. */
interface Search {
  readonly kind: 'name' | 'prefix'
  readonly text: string
}

const DEFAULT_PAGE = 100

/**
 * The names in use, as far as a principal may read them. Only those are asked for: to take a page of all names and
 * leave some out would tell by the number of pages, and by where they end, what the others are.
 */
export class VisibleNames {
  private readonly store: Store
  private readonly looks: Looks
  private readonly cursors = new Cursors()

  constructor(store: Store, looks: Looks) {
    this.store = store
    this.looks = looks
  }

  async list(principal: Principal, query: ListQuery, timeout: number): Promise<ListPage | Unknown> {
    const { prefix = '', limit = DEFAULT_PAGE } = query
    const searches = searchesOf(principal.readable, prefix)
    let { at, cursor } = this.resume(searches, query.cursor)
    const names: string[] = []
    for (; at < searches.length; at++, cursor = undefined) {
      const search = searches[at]
      if (search === undefined) break
      do {
        if (names.length >= limit) return { names, cursor: this.cursors.seal([keyOf(search), cursor ?? '']) }
        const wish = { limit: limit - names.length, cursor }
        // Each by itself: a principal may have many prefixes.
        const page = await this.looks.take(principal, () => this.page(search, wish, timeout))
        if ('kind' in page) return page
        names.push(...page.names)
        cursor = page.cursor
      } while (cursor !== undefined)
    }
    return { names }
  }

  private async page(
    { kind, text }: Search,
    { limit, cursor }: { limit: number; cursor: string | undefined },
    timeout: number,
  ): Promise<ListPage | Unknown> {
    if (kind === 'prefix')
      return this.store.list({ prefix: text, limit, ...(cursor === undefined ? {} : { cursor }) }, timeout)
    const info = await this.store.inspect(text, timeout)
    if ('kind' in info) return info
    return { names: info.holders.length + info.waiters.length > 0 ? [text] : [] }
  }

  private resume(
    searches: readonly Search[],
    sealed: string | undefined,
  ): { at: number; cursor: string | undefined } {
    if (sealed === undefined) return { at: 0, cursor: undefined }
    const [key, cursor] = this.cursors.open(sealed) ?? []
    const at = searches.findIndex((search) => keyOf(search) === key)
    if (at < 0)
      throw new Failure('NOT_FOUND', 'There is no such page: cursor must be one that this server gave.')
    return { at, cursor: cursor === '' ? undefined : cursor }
  }
}

const keyOf = ({ kind, text }: Search): string => `${kind} ${text}`

/** What to ask for so that everything found may be read, and everything that may be read is found, once. */
export function searchesOf(readable: readonly string[], prefix: string): readonly Search[] {
  const searches: Search[] = []
  for (const allowed of new Set(readable)) {
    const open = allowed === '' || isSeparator(allowed.at(-1))
    const parts: Search[] = open
      ? [{ kind: 'prefix', text: allowed }]
      : [
          { kind: 'name', text: allowed },
          { kind: 'prefix', text: `${allowed}/` },
          { kind: 'prefix', text: `${allowed}:` },
        ]
    for (const { kind, text } of parts) {
      if (text.startsWith(prefix)) searches.push({ kind, text })
      else if (kind === 'prefix' && prefix.startsWith(text)) searches.push({ kind, text: prefix })
    }
  }
  return outermost(searches)
}

/** Without those that are within another one, or are the same. A token may have thousands of prefixes: each is compared with one other. */
function outermost(searches: readonly Search[]): readonly Search[] {
  let around: string | undefined
  return searches.toSorted(byText).filter(({ kind, text }, index, sorted) => {
    if (around !== undefined && text.startsWith(around)) return false
    const before = sorted[index - 1]
    if (kind === 'prefix') around = text
    return kind === 'prefix' || before?.text !== text
  })
}

/** What is within a prefix comes right behind it, a name of the same text too. */
function byText(one: Search, other: Search): number {
  if (one.text !== other.text) return one.text < other.text ? -1 : 1
  return Number(one.kind === 'name') - Number(other.kind === 'name')
}

function isSeparator(char: string | undefined): boolean {
  return char === '/' || char === ':'
}
