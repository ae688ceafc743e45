import { ALL } from '../../core/contract.ts'

/**
 * Who goes first: Curator's rules for the nodes of one directory, as pure functions of their names. The server appends a
 * counter to each name; its order is the order of the queue.
 */

export type QueueKind = 'lock' | 'read' | 'write'

/** How the names of each kind end, before the number. */
export const SUFFIX: Readonly<Record<QueueKind | 'lease', string>> = {
  lock: 'lock-',
  read: '__READ__',
  write: '__WRIT__',
  lease: 'lease-',
}

export interface QueueNode {
  readonly name: string
  readonly kind: QueueKind
  readonly sequence: number
}

export interface Position {
  /** Whose end to wait for; null: it is our turn. */
  readonly behind: QueueNode | null
  /** Who stands before that one. */
  readonly beyond: QueueNode | null
  /** How many stand before us, those who do not keep us waiting included. */
  readonly ahead: number
  /** Somebody waits behind us. */
  readonly contended: boolean
  /** Another kind of lock was here first: its capacity. */
  readonly mismatch: number | null
  /** The directory also has a semaphore's, which may be in use. */
  readonly semaphore: boolean
}

export const ALONE: Position = {
  behind: null,
  beyond: null,
  ahead: 0,
  contended: false,
  mismatch: null,
  semaphore: false,
}

/** As the server writes it: ten characters at least, of which a minus may be one. */
const NAME = /(lock-|__READ__|__WRIT__)(\d{10,}|-\d{9,})$/
const KINDS: Readonly<Record<string, QueueKind>> = { 'lock-': 'lock', __READ__: 'read', __WRIT__: 'write' }
export const SEMAPHORE_GATE = 'locks'
export const SEMAPHORE_LEASES = 'leases'

/** Null: not a node of a queue. */
export function parseNode(name: string): QueueNode | null {
  const match = NAME.exec(name)
  const kind = match === null ? undefined : KINDS[match[1] as string]
  return kind === undefined ? null : { name, kind, sequence: Number(match?.[2]) }
}

/**
 * The counter is a signed 32-bit number that begins again below zero after 2,147,483,647, so its order is that of a circle.
 * A writer that goes on as a reader has a reader's node with the writer's own number: the writer comes first.
 */
export function compareNodes(a: QueueNode, b: QueueNode): number {
  const order = (a.sequence - b.sequence) | 0
  return order !== 0 || a.kind === b.kind ? order : a.kind === 'read' ? 1 : -1
}

export function capacityOf(kind: QueueKind): number {
  return kind === 'lock' ? 1 : ALL
}

const LAST_NUMBER = 2 ** 31 - 1
/** So many numbers before the last, a directory is emptied: whoever finds others there goes and comes back. */
const SPARE_NUMBERS = 1_000_000

/**
 * The counter is near its end, or beyond. Some servers go on below zero, some give the last number again and again: then the order
 * of the nodes is not to be seen any more. A directory that was empty, removed and made anew begins at zero.
 */
export function isWorn({ sequence }: QueueNode): boolean {
  return sequence < 0 || sequence > LAST_NUMBER - SPARE_NUMBERS
}

/** Whether a node may hold, or wait, where it stands. In a worn directory only who found it empty may, and at its end nobody. */
export function mayStay(own: QueueNode, { ahead }: Position): boolean {
  return !isWorn(own) || (ahead === 0 && own.sequence >= 0 && own.sequence < LAST_NUMBER)
}

/** Where a node stands among the children of its directory; null: it is not there any more. */
export function positionOf(children: readonly string[], own: QueueNode): Position | null {
  let here = false
  let ahead = 0
  let behind: QueueNode | null = null
  let beyond: QueueNode | null = null
  let contended = false
  let mismatch: number | null = null
  let semaphore = false
  const shared = own.kind === 'read'
  for (const name of children) {
    if (name === own.name) {
      here = true
      continue
    }
    const node = parseNode(name)
    if (node === null) {
      semaphore ||= name === SEMAPHORE_GATE || name === SEMAPHORE_LEASES
      continue
    }
    if (compareNodes(node, own) > 0) {
      contended ||= !shared || node.kind !== 'read'
      continue
    }
    ahead++
    if (capacityOf(node.kind) !== capacityOf(own.kind)) mismatch = capacityOf(node.kind)
    // A reader waits for the last writer before it, anybody else for whoever is directly before him.
    if (shared && node.kind === 'read') continue
    if (behind === null || compareNodes(node, behind) > 0) {
      beyond = behind
      behind = node
    } else if (beyond === null || compareNodes(node, beyond) > 0) {
      beyond = node
    }
  }
  return here ? { behind, beyond, ahead, contended, mismatch, semaphore } : null
}

/**
 * When the only one before us goes it is our turn: nobody can come in between. Not so for readers and writers, since a writer's place
 * may be taken by a reader; and whoever does not know of anybody behind it looks whether somebody has come.
 */
export function isNextInLine({ kind }: Pick<QueueNode, 'kind'>, { ahead, contended }: Position): boolean {
  return kind === 'lock' && ahead === 1 && contended
}

/** The nodes of a directory in the order of the queue, and how many of them are held. */
export function lineUp(children: readonly string[]): { readonly line: QueueNode[]; readonly held: number } {
  const line = children.map(parseNode).filter((node) => node !== null)
  line.sort(compareNodes)
  if (line[0]?.kind !== 'read') return { line, held: Math.min(line.length, 1) }
  const writer = line.findIndex(({ kind }) => kind !== 'read')
  return { line, held: writer === -1 ? line.length : writer }
}
