import type { Operation } from './operation.ts'

/** A lock as it should be: what each call does to its state, or null where it could not have happened. */
export interface Model<S> {
  readonly name: string
  readonly initial: S
  step(state: S, operation: Operation): S | null
  /** The same text for the same state. */
  key(state: S): string
}

/** One at a time, and only its owner gives it back. */
export const ownedMutex: Model<string> = {
  name: 'owner-aware mutex',
  initial: '',
  step(owner, { action, owner: who }) {
    if (action === 'acquire') return owner === '' ? who : null
    return owner === who ? '' : null
  },
  key: (owner) => owner,
}

export interface Fenced {
  readonly owner: string
  readonly fence: bigint
}

/** As before, and every grant has a token above all before it. */
export const fencedMutex: Model<Fenced> = {
  name: 'fenced mutex',
  initial: { owner: '', fence: -1n },
  step({ owner, fence }, { action, owner: who, token }) {
    if (action === 'acquire') return owner === '' && token > fence ? { owner: who, fence: token } : null
    return owner === who ? { owner: '', fence } : null
  },
  key: ({ owner, fence }) => `${owner} ${fence}`,
}

export interface Reentrant extends Fenced {
  readonly depth: number
}

/** The owner may take it again, with the same token, and gives it back as often. */
export const reentrantMutex: Model<Reentrant> = {
  name: 're-entrant fenced mutex',
  initial: { owner: '', fence: -1n, depth: 0 },
  step({ owner, fence, depth }, { action, owner: who, token }) {
    if (action === 'release') {
      if (owner !== who) return null
      return depth === 1 ? { owner: '', fence, depth: 0 } : { owner, fence, depth: depth - 1 }
    }
    if (owner === who) return token === fence ? { owner, fence, depth: depth + 1 } : null
    return owner === '' && token > fence ? { owner: who, fence: token, depth: 1 } : null
  },
  key: ({ owner, fence, depth }) => `${owner} ${fence} ${depth}`,
}

/** Who holds how much, in the order of the owners. */
export type Holders = readonly { readonly owner: string; readonly weight: number }[]

/** As many permits as its capacity, whoever has them. */
export const semaphore: Model<Holders> = {
  name: 'semaphore',
  initial: [],
  step(holders, { action, owner, weight, capacity }) {
    const rest = holders.filter((holder) => holder.owner !== owner)
    if (action === 'release') return rest.length < holders.length ? rest : null
    const used = holders.reduce((sum, holder) => sum + holder.weight, 0)
    if (rest.length < holders.length || used + weight > capacity) return null
    return [...holders, { owner, weight }].sort((a, b) => (a.owner < b.owner ? -1 : 1))
  },
  key: (holders) => holders.map(({ owner, weight }) => `${owner}:${weight}`).join(' '),
}

export interface ReadWrite {
  readonly readers: readonly string[]
  readonly writer: string
  /** The highest token of any writer, and of anybody. */
  readonly written: bigint
  readonly highest: bigint
}

/**
 * Readers together or one writer; a writer's token is above all before it, a reader's above the last writer's. A writer may go on as
 * a reader, with its token.
 */
export const readWriteLock: Model<ReadWrite> = {
  name: 'read-write lock',
  initial: { readers: [], writer: '', written: -1n, highest: -1n },
  step(state, { action, owner, weight, capacity, token }) {
    const { readers, writer, written, highest } = state
    const writes = weight === capacity
    if (action === 'downgrade') {
      return writer === owner ? { ...state, writer: '', readers: [...readers, owner].sort() } : null
    }
    if (action === 'release') {
      if (writer === owner) return { ...state, writer: '' }
      const rest = readers.filter((reader) => reader !== owner)
      return rest.length < readers.length ? { ...state, readers: rest } : null
    }
    if (writer !== '' || (writes && readers.length > 0)) return null
    if (writes) return token > highest ? { readers, writer: owner, written: token, highest: token } : null
    if (token <= written || readers.includes(owner)) return null
    const now = [...readers, owner].sort()
    return { readers: now, writer, written, highest: token > highest ? token : highest }
  },
  key: ({ readers, writer, written, highest }) => `${readers.join(' ')}|${writer}|${written}|${highest}`,
}
