import type { Socket } from 'node:net'

/** What happens to the bytes of one direction. All of it can be switched while connections are open. */
export interface LinkFaults {
  /** Milliseconds by which everything is late. The order is kept. */
  readonly latency?: number
  /** Swallow everything, the end of the connection too, and keep the connection open: what a half-open one looks like. */
  readonly blackhole?: boolean
  /** Keep everything until this is switched off again: a network that comes back and delivers late. */
  readonly hold?: boolean
  /** At most this many bytes per packet. */
  readonly slice?: number
}

export interface FaultPipeOptions {
  readonly from: Socket
  readonly to: Socket
  readonly faults: LinkFaults
  readonly onSwallow: (bytes: number) => void
}

interface Packet {
  /** Undefined: the end of the stream. */
  readonly bytes: Buffer | undefined
  readonly due: number
}

/** One direction of one connection. */
export class FaultPipe {
  /** Sees every chunk before it is sent on. False drops it. */
  inspect: (chunk: Buffer) => boolean = () => true
  private readonly from: Socket
  private readonly to: Socket
  private readonly onSwallow: (bytes: number) => void
  private readonly packets: Packet[] = []
  private faults: LinkFaults
  private timer: NodeJS.Timeout | NodeJS.Immediate | undefined
  /** Bytes were swallowed: the stream can never be whole again, not even after healing. */
  private broken = false
  /** What was written has not left yet. */
  private full = false

  constructor({ from, to, faults, onSwallow }: FaultPipeOptions) {
    this.from = from
    this.to = to
    this.faults = faults
    this.onSwallow = onSwallow
    from.on('data', (chunk: Buffer) => {
      if (this.inspect(chunk)) this.take(chunk)
    })
    from.on('end', () => this.take(undefined))
  }

  /** The other side must not learn that this one is gone. */
  get silent(): boolean {
    return this.broken || this.faults.blackhole === true || this.faults.hold === true
  }

  set(faults: LinkFaults): void {
    this.faults = faults
    this.pump()
  }

  stop(): void {
    this.packets.length = 0
    this.clearTimer()
  }

  private take(bytes: Buffer | undefined): void {
    const { blackhole = false, latency = 0, slice = Infinity } = this.faults
    this.broken ||= blackhole
    if (this.broken) return this.onSwallow(bytes?.length ?? 0)
    const due = performance.now() + latency
    if (bytes === undefined) this.packets.push({ bytes, due })
    else
      for (let at = 0; at < bytes.length; at += slice)
        this.packets.push({ bytes: bytes.subarray(at, at + slice), due })
    this.pump()
  }

  private pump(): void {
    this.clearTimer()
    if (this.faults.hold === true || this.broken) return
    for (let packet = this.packets[0]; packet !== undefined; packet = this.packets[0]) {
      const late = packet.due - performance.now()
      if (late > 0) {
        this.timer = setTimeout(() => this.pump(), Math.ceil(late))
        return
      }
      this.packets.shift()
      this.deliver(packet.bytes)
      if (this.faults.slice !== undefined) {
        // The next one in a packet of its own.
        this.timer = setImmediate(() => this.pump())
        return
      }
    }
  }

  private deliver(bytes: Buffer | undefined): void {
    const { from, to } = this
    if (to.destroyed || to.writableEnded) return
    if (bytes === undefined) {
      to.end()
    } else if (!to.write(bytes) && !this.full) {
      this.full = true
      from.pause()
      to.once('drain', () => {
        this.full = false
        from.resume()
      })
    }
  }

  private clearTimer(): void {
    clearTimeout(this.timer as NodeJS.Timeout | undefined)
    clearImmediate(this.timer as NodeJS.Immediate | undefined)
    this.timer = undefined
  }
}
