import { ZooKeeperError } from './errors.ts'
import type { Mergeable } from './merging.ts'
import * as ops from './operations.ts'
import type { Created, Operation } from './operations.ts'
import type { CreateOptions, SingleWrite, Write } from './options.ts'
import { checkPath } from './paths.ts'
import type { Chroot } from './paths.ts'
import { OPEN_ACL } from './records.ts'

/** Writes as a caller puts them, made into operations of the wire: paths checked and below the chroot, data as bytes. */

const EMPTY = new Uint8Array(0)

export function bytesOf(data: Uint8Array | string): Uint8Array {
  return typeof data === 'string' ? Buffer.from(data) : data
}

export function creation(
  path: string,
  { mode = 'persistent', data = EMPTY, acl = OPEN_ACL, ttl = 0 }: CreateOptions,
  chroot: Chroot,
): Operation<Created> {
  checkPath(path, mode.includes('sequential'))
  return ops.create({ path: chroot.full(path), data, acl, mode, ttl })
}

/** A part of a transaction. */
export function partOf(write: Write, chroot: Chroot): Operation<unknown> {
  if (write.kind === 'create') return creation(write.path, write, chroot)
  checkPath(write.path)
  const path = chroot.full(write.path)
  switch (write.kind) {
    case 'delete':
      return ops.remove(path, write.version ?? ops.ANY_VERSION)
    case 'setData':
      return ops.setData(path, bytesOf(write.data), write.version ?? ops.ANY_VERSION)
    case 'check':
      return ops.check(path, write.version)
  }
}

/** A frame's header, numbers and lengths, and a short ACL. */
const AROUND = 64

export function mergeable(write: SingleWrite, chroot: Chroot): Mergeable {
  if (write.kind === 'delete') {
    checkPath(write.path)
    const path = chroot.full(write.path)
    const { name, opcode, write: encode } = ops.remove(path, write.version ?? ops.ANY_VERSION)
    const size = AROUND + path.length
    return {
      name,
      opcode,
      path,
      size,
      write: encode,
      read: (_, zxid) => ({ path, zxid }),
      creates: false,
      unique: false,
    }
  }
  // Somebody without our types may ask for what only a transaction can do.
  if (write.kind !== 'create') throw new ZooKeeperError('BAD_ARGUMENTS', 'write creates and deletes')
  const { mode = 'persistent', data = EMPTY, acl = OPEN_ACL, unique = false } = write
  checkPath(write.path, mode.includes('sequential'))
  const path = chroot.full(write.path)
  const { name, opcode, write: encode } = ops.create({ path, data, acl, mode, ttl: 0 })
  return {
    name,
    opcode,
    path,
    size: AROUND + path.length + data.length,
    write: encode,
    // The first number of the Stat.
    read: (reader) => ({ path: reader.string(), zxid: reader.long() }),
    creates: true,
    unique,
  }
}
