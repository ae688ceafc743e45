import type { JuteReader, JuteWriter } from './jute.ts'
import { MODES, OPCODES, readAcl, readStat, writeAcl } from './records.ts'
import type { Acl, CreateMode, Stat } from './records.ts'

/** One request as it goes over the wire, and how to read its reply. Paths are the server's, chroot included. */
export interface Operation<T> {
  readonly name: string
  readonly opcode: number
  readonly path?: string
  readonly write: (writer: JuteWriter) => void
  /** `zxid`: the last transaction that the server had carried out; for a write, its own. */
  readonly read: (reader: JuteReader, zxid: bigint) => T
  /** A refusal that is a result: `exists` of nothing. */
  readonly otherwise?: { readonly errno: number; readonly value: T }
  /** Called with the reply, before the caller hears of it and before any later message is looked at; 0: no error. */
  replied?: (errno: number) => void
}

export interface Created {
  /** The node's path, with the number that the server appended. */
  readonly path: string
  readonly stat: Stat
}

export interface NodeData {
  readonly data: Buffer
  readonly stat: Stat
}

export interface Children {
  /** Names, not paths, in no order. */
  readonly children: string[]
  readonly stat: Stat
}

export const NO_NODE_ERRNO = -101
export const ANY_VERSION = -1
const nothing = (): void => undefined

export interface CreateRecord {
  readonly path: string
  readonly data: Uint8Array | string
  readonly acl: readonly Acl[]
  readonly mode: CreateMode
  /** Milliseconds; for the two modes with a ttl. */
  readonly ttl: number
}

export function create({ path, data, acl, mode, ttl }: CreateRecord): Operation<Created> {
  const { flags, opcode } = MODES[mode]
  return {
    name: 'create',
    opcode,
    path,
    write: (writer) => {
      writer.string(path)
      // Text and bytes look the same on the wire.
      if (typeof data === 'string') writer.string(data)
      else writer.bytes(data)
      writeAcl(writer, acl)
      writer.int(flags)
      if (opcode === OPCODES.createTtl) writer.long(BigInt(ttl))
    },
    read: (reader) => ({ path: reader.string(), stat: readStat(reader) }),
  }
}

export function remove(path: string, version: number): Operation<void> {
  const write = (writer: JuteWriter): void => {
    writer.string(path)
    writer.int(version)
  }
  return { name: 'delete', opcode: OPCODES.delete, path, write, read: nothing }
}

export function check(path: string, version: number): Operation<void> {
  return { ...remove(path, version), name: 'check', opcode: OPCODES.check }
}

export function exists(path: string, watch: boolean): Operation<Stat | null> {
  return {
    name: 'exists',
    opcode: OPCODES.exists,
    path,
    write: (writer) => writePathAndWatch(writer, path, watch),
    read: readStat,
    otherwise: { errno: NO_NODE_ERRNO, value: null },
  }
}

export function getData(path: string, watch: boolean): Operation<NodeData> {
  return {
    name: 'getData',
    opcode: OPCODES.getData,
    path,
    write: (writer) => writePathAndWatch(writer, path, watch),
    read: (reader) => ({ data: reader.bytes(), stat: readStat(reader) }),
  }
}

export function setData(path: string, data: Uint8Array, version: number): Operation<Stat> {
  const write = (writer: JuteWriter): void => {
    writer.string(path)
    writer.bytes(data)
    writer.int(version)
  }
  return { name: 'setData', opcode: OPCODES.setData, path, write, read: readStat }
}

export function getChildren(path: string, watch: boolean): Operation<Children> {
  return {
    name: 'getChildren',
    opcode: OPCODES.getChildren2,
    path,
    write: (writer) => writePathAndWatch(writer, path, watch),
    read: (reader) => ({ children: reader.strings(), stat: readStat(reader) }),
  }
}

export function getAcl(path: string): Operation<{ acl: Acl[]; stat: Stat }> {
  return {
    name: 'getAcl',
    opcode: OPCODES.getAcl,
    path,
    write: (writer) => writer.string(path),
    read: (reader) => ({ acl: readAcl(reader), stat: readStat(reader) }),
  }
}

export function setAcl(path: string, acl: readonly Acl[], version: number): Operation<Stat> {
  const write = (writer: JuteWriter): void => {
    writer.string(path)
    writeAcl(writer, acl)
    writer.int(version)
  }
  return { name: 'setAcl', opcode: OPCODES.setAcl, path, write, read: readStat }
}

export function sync(path: string): Operation<void> {
  return { name: 'sync', opcode: OPCODES.sync, path, write: (writer) => writer.string(path), read: nothing }
}

export function getEphemerals(prefix: string): Operation<string[]> {
  return {
    name: 'getEphemerals',
    opcode: OPCODES.getEphemerals,
    path: prefix,
    write: (writer) => writer.string(prefix),
    read: (reader) => reader.strings(),
  }
}

export interface Identity {
  readonly scheme: string
  readonly id: string
}

export function whoAmI(): Operation<Identity[]> {
  return {
    name: 'whoAmI',
    opcode: OPCODES.whoAmI,
    write: nothing,
    read: (reader) => {
      const identities: Identity[] = []
      for (let left = reader.int(); left > 0; left--) {
        identities.push({ scheme: reader.string(), id: reader.string() })
      }
      return identities
    },
  }
}

/** Both take a path and a number: which kind of watch. */
export function removeWatches(path: string, kind: 1 | 2 | 3): Operation<void> {
  const write = (writer: JuteWriter): void => {
    writer.string(path)
    writer.int(kind)
  }
  return { name: 'removeWatches', opcode: OPCODES.removeWatches, path, write, read: nothing }
}

export function addWatch(path: string, mode: 0 | 1): Operation<void> {
  const write = (writer: JuteWriter): void => {
    writer.string(path)
    writer.int(mode)
  }
  return { name: 'addWatch', opcode: OPCODES.addWatch, path, write, read: nothing }
}

export function closeSession(): Operation<void> {
  return { name: 'closeSession', opcode: OPCODES.closeSession, write: nothing, read: nothing }
}

function writePathAndWatch(writer: JuteWriter, path: string, watch: boolean): void {
  writer.string(path)
  writer.bool(watch)
}
