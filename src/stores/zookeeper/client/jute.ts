import { ZooKeeperError } from './errors.ts'

/**
 * Jute, ZooKeeper's encoding: big-endian numbers, and strings, buffers and lists with a 32-bit length before them,
 * -1 for none. A frame is one message with its 32-bit length before it.
 */

const CHUNK = 32 * 1024

/** Encodes frames one behind the other, into memory that goes to the socket as it is. Written bytes never change. */
export class JuteWriter {
  private buffer: Buffer = Buffer.allocUnsafeSlow(CHUNK)
  /** Where the frames begin that nobody took yet. */
  private taken = 0
  private frame = 0
  private at = 0

  /** Begins a frame. If its encoding throws, `undo` forgets it. */
  begin(): void {
    this.frame = this.at
    this.int(0)
  }

  /** Ends the frame and returns its length without the length field. */
  end(): number {
    const length = this.at - this.frame - 4
    this.buffer.writeInt32BE(length, this.frame)
    return length
  }

  undo(): void {
    this.at = this.frame
  }

  /** All frames that were ended since the last time. */
  take(): Buffer {
    const bytes = this.buffer.subarray(this.taken, this.at)
    this.taken = this.at
    return bytes
  }

  get pending(): number {
    return this.at - this.taken
  }

  int(value: number): void {
    // A Buffer would take nothing for 0: no right for anybody, or another version than the one that was meant.
    if (!Number.isInteger(value)) throw new TypeError(`${String(value)} is not a whole number`)
    this.reserve(4)
    this.at = this.buffer.writeInt32BE(value, this.at)
  }

  long(value: bigint): void {
    this.reserve(8)
    this.at = this.buffer.writeBigInt64BE(value, this.at)
  }

  bool(value: boolean): void {
    this.reserve(1)
    this.at = this.buffer.writeUInt8(value ? 1 : 0, this.at)
  }

  string(value: string): void {
    this.reserve(4 + value.length * 3)
    const bytes = this.buffer.write(value, this.at + 4, 'utf8')
    this.buffer.writeInt32BE(bytes, this.at)
    this.at += 4 + bytes
  }

  bytes(value: Uint8Array | null): void {
    if (value === null) return this.int(-1)
    this.reserve(4 + value.length)
    this.buffer.writeInt32BE(value.length, this.at)
    this.buffer.set(value, this.at + 4)
    this.at += 4 + value.length
  }

  strings(values: readonly string[]): void {
    this.int(values.length)
    for (const value of values) this.string(value)
  }

  private reserve(size: number): void {
    if (this.at + size <= this.buffer.length) return
    const kept = this.buffer.subarray(this.taken, this.at)
    const next = Buffer.allocUnsafeSlow(Math.max(CHUNK, 2 * (kept.length + size)))
    next.set(kept)
    this.buffer = next
    this.frame -= this.taken
    this.at -= this.taken
    this.taken = 0
  }
}

/** Decodes one frame. Whatever the bytes are, it returns a value or throws `PROTOCOL`: it never reads beyond the frame. */
export class JuteReader {
  private readonly buffer: Buffer
  private at: number
  private readonly end: number

  constructor(buffer: Buffer, start = 0, end: number = buffer.length) {
    this.buffer = buffer
    this.at = start
    this.end = end
  }

  get remaining(): number {
    return this.end - this.at
  }

  int(): number {
    return this.buffer.readInt32BE(this.advance(4))
  }

  long(): bigint {
    return this.buffer.readBigInt64BE(this.advance(8))
  }

  bool(): boolean {
    return this.buffer[this.advance(1)] !== 0
  }

  string(): string {
    const length = this.length()
    if (length === 0) return ''
    const start = this.advance(length)
    return this.buffer.toString('utf8', start, start + length)
  }

  /** A copy: the frame's memory belongs to a chunk that may be much larger. */
  bytes(): Buffer {
    const length = this.length()
    const start = this.advance(length)
    return Buffer.from(this.buffer.subarray(start, start + length))
  }

  strings(): string[] {
    const count = this.length()
    // Each takes four bytes at least: a wild count must not become a wild allocation.
    if (count * 4 > this.remaining) throw malformed('a list is longer than its frame')
    const values: string[] = []
    for (let index = 0; index < count; index++) values.push(this.string())
    return values
  }

  private length(): number {
    const length = this.int()
    if (length < -1) throw malformed('a negative length')
    return length === -1 ? 0 : length
  }

  private advance(size: number): number {
    const { at } = this
    if (size > this.end - at) throw malformed('a frame ends too early')
    this.at = at + size
    return at
  }
}

export function malformed(what: string): ZooKeeperError {
  return new ZooKeeperError('PROTOCOL', `Not a ZooKeeper message: ${what}`)
}
