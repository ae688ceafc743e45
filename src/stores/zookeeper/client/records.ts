import type { JuteReader, JuteWriter } from './jute.ts'

/** A node's Stat: when and by whom it was made and changed. Transaction ids and session ids are 64 bits wide. */
export interface Stat {
  /** The transaction that created the node. */
  readonly czxid: bigint
  /** The one that last changed its data. */
  readonly mzxid: bigint
  /** Milliseconds of the server's wall clock. */
  readonly ctime: number
  readonly mtime: number
  readonly version: number
  /** Changes of the list of children. */
  readonly cversion: number
  readonly aversion: number
  /** The session that the node ends with; 0n: none. */
  readonly ephemeralOwner: bigint
  readonly dataLength: number
  readonly numChildren: number
  /** The transaction that last changed the list of children. */
  readonly pzxid: bigint
}

export function readStat(reader: JuteReader): Stat {
  return {
    czxid: reader.long(),
    mzxid: reader.long(),
    ctime: Number(reader.long()),
    mtime: Number(reader.long()),
    version: reader.int(),
    cversion: reader.int(),
    aversion: reader.int(),
    ephemeralOwner: reader.long(),
    dataLength: reader.int(),
    numChildren: reader.int(),
    pzxid: reader.long(),
  }
}

export const PERMISSIONS = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const

export interface Acl {
  /** A sum of {@link PERMISSIONS}. */
  readonly permissions: number
  readonly scheme: string
  readonly id: string
}

/** Anybody may do anything. */
export const OPEN_ACL: readonly Acl[] = [{ permissions: PERMISSIONS.all, scheme: 'world', id: 'anyone' }]
/** Whoever has the same identity as the creator may do anything; needs `auth`. */
export const CREATOR_ACL: readonly Acl[] = [{ permissions: PERMISSIONS.all, scheme: 'auth', id: '' }]

export function writeAcl(writer: JuteWriter, acl: readonly Acl[]): void {
  writer.int(acl.length)
  for (const { permissions, scheme, id } of acl) {
    writer.int(permissions)
    writer.string(scheme)
    writer.string(id)
  }
}

export function readAcl(reader: JuteReader): Acl[] {
  const count = reader.int()
  const acl: Acl[] = []
  // A wild count ends with the frame: the reader throws there.
  for (let index = 0; index < count; index++) {
    acl.push({ permissions: reader.int(), scheme: reader.string(), id: reader.string() })
  }
  return acl
}

/** `container`: removed by the server some time after its last child. */
export type CreateMode =
  | 'persistent'
  | 'persistent-sequential'
  | 'ephemeral'
  | 'ephemeral-sequential'
  | 'container'
  | 'persistent-ttl'
  | 'persistent-sequential-ttl'

export const OPCODES = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getAcl: 6,
  setAcl: 7,
  sync: 9,
  ping: 11,
  getChildren2: 12,
  check: 13,
  multi: 14,
  create2: 15,
  removeWatches: 18,
  createContainer: 19,
  createTtl: 21,
  closeSession: -11,
  error: -1,
  auth: 100,
  setWatches: 101,
  getEphemerals: 103,
  setWatches2: 105,
  addWatch: 106,
  whoAmI: 107,
} as const

/** The number of each mode on the wire, and the operation that takes it. */
export const MODES: Readonly<Record<CreateMode, { readonly flags: number; readonly opcode: number }>> = {
  persistent: { flags: 0, opcode: OPCODES.create2 },
  ephemeral: { flags: 1, opcode: OPCODES.create2 },
  'persistent-sequential': { flags: 2, opcode: OPCODES.create2 },
  'ephemeral-sequential': { flags: 3, opcode: OPCODES.create2 },
  // With plain `create` a server makes a persistent node of it and says nothing.
  container: { flags: 4, opcode: OPCODES.createContainer },
  'persistent-ttl': { flags: 5, opcode: OPCODES.createTtl },
  'persistent-sequential-ttl': { flags: 6, opcode: OPCODES.createTtl },
}
