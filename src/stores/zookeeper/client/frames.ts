import { malformed } from './jute.ts'

/**
 * Cuts a stream of bytes into frames. Chunks that hold whole frames are not copied; a frame that comes in many pieces is
 * put together once, when its last piece is there.
 */
export class FrameCutter {
  private readonly most: number
  private pieces: Buffer[] = []
  private have = 0
  /** Bytes that the begun frame needs, its length field included; 0 while that is not known. */
  private need = 0

  constructor(most: number) {
    this.most = most
  }

  /** Calls `frame` for each complete one: where its body begins and ends in the buffer. */
  push(chunk: Buffer, frame: (buffer: Buffer, start: number, end: number) => void): void {
    let buffer = chunk
    if (this.have > 0) {
      this.pieces.push(chunk)
      this.have += chunk.length
      if (this.have < Math.max(this.need, 4)) return
      buffer = Buffer.concat(this.pieces, this.have)
      this.pieces = []
      this.have = 0
      this.need = 0
    }
    let at = 0
    while (buffer.length - at >= 4) {
      const length = buffer.readInt32BE(at)
      if (length < 0 || length > this.most) throw malformed(`a frame of ${length} bytes (limit ${this.most})`)
      if (buffer.length - at < 4 + length) {
        this.need = 4 + length
        break
      }
      frame(buffer, at + 4, at + 4 + length)
      at += 4 + length
    }
    if (at === buffer.length) return
    this.pieces = [buffer.subarray(at)]
    this.have = buffer.length - at
  }
}
