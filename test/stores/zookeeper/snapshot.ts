/**
 * Edits a server's snapshot: a directory's counter of creations can be set in no other way, and to create two thousand million
 * nodes takes a month. The format: a header, sessions, access lists, then path and record of every node, ended by the path
 * "/"; each part is sealed with an Adler-32 checksum of all bytes before it, and the path "/" again.
 */

/** `bytes` with other counters. The paths must be in it. */
export function setCreations(bytes: Buffer, creations: Readonly<Record<string, number>>): Buffer {
  const edited = Buffer.from(bytes)
  for (const [path, count] of Object.entries(creations)) edited.writeInt32BE(count, counterOf(edited, path))
  return seal(edited, bytes)
}

/** Where the counter stands: behind the path come the data, the access list, two transactions, two times and the version. */
function counterOf(bytes: Buffer, path: string): number {
  const at = bytes.indexOf(jute(path))
  if (at === -1) throw new Error(`${path} is not in the snapshot`)
  const data = at + 4 + Buffer.byteLength(path)
  const length = Math.max(0, bytes.readInt32BE(data))
  return data + 4 + length + 8 + 4 * 8 + 4
}

/** Every place where the old checksum of all bytes before it stood gets the new one, in order: later ones cover earlier ones. */
function seal(edited: Buffer, original: Buffer): Buffer {
  const end = jute('/')
  let seals = 0
  let sum = 1
  let old = 1
  let done = 0
  for (let at = original.indexOf(end); at !== -1; at = original.indexOf(end, at + 1)) {
    const from = at - 8
    if (from < done) continue
    old = adler32(original.subarray(done, from), old)
    sum = adler32(edited.subarray(done, from), sum)
    done = from
    if (original.readBigInt64BE(from) !== BigInt(old)) continue
    edited.writeBigInt64BE(BigInt(sum), from)
    seals++
  }
  if (seals === 0) throw new Error('The snapshot has no checksum')
  return edited
}

export function adler32(bytes: Uint8Array, start = 1): number {
  let low = start & 0xffff
  let high = start >>> 16
  for (const byte of bytes) {
    low = (low + byte) % 65_521
    high = (high + low) % 65_521
  }
  return ((high << 16) | low) >>> 0
}

function jute(text: string): Buffer {
  const bytes = Buffer.from(text)
  const length = Buffer.alloc(4)
  length.writeInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}
