import type { Socket } from 'node:net'

/** Requests that may wait on one connection behind the one that is being answered. */
const WAITING = 32

/**
 * One request of a connection at a time: the next is looked at when the answer to the one before has been taken. A
 * client may send many in one packet, and would otherwise have them all answered before it reads the first.
 */
export class Turns {
  private readonly waiting = new WeakMap<Socket, (() => void)[]>()

  isBusy(socket: Socket): boolean {
    return this.waiting.has(socket)
  }

  /** `serve` is called now, or when its turn has come; `done` must follow. */
  take(socket: Socket, serve: () => void): void {
    const waiting = this.waiting.get(socket)
    if (waiting === undefined) {
      this.waiting.set(socket, [])
      serve()
    } else if (waiting.length < WAITING) waiting.push(serve)
    else socket.destroy()
  }

  done(socket: Socket): void {
    const next = this.waiting.get(socket)?.shift()
    if (next === undefined || socket.destroyed) this.waiting.delete(socket)
    else next()
  }
}
