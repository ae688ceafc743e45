import { listen } from './driver.ts'

const { setImmediate, clearImmediate } = globalThis

/** A client of `redis` 5 or 6 that can be told to wait with what it has to send. */
interface Pausing {
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
  _pause?(): void
  _unpause?(): void
}

/**
 * `redis` 5 writes what it is given in the next turn of the event loop, also if the connection has ended by then. It waits for answers to what
 * it wrote there, and takes the first ones on the next connection for those: from then on each answer goes to another
 * question, and a claim is told of somebody else's grant; or the client never becomes ready again. This happens when several
 * connections end at once, and what fails on one of them is asked on another. So the client writes nothing until that turn
 * is over, or until it has the next connection. Version 4 writes at once, and 6 looks before it writes. Returns the function that ends it.
 */
export function keepFromLostWrites(client: object): () => void {
  const pausing = client as Pausing
  if (typeof pausing._pause !== 'function' || typeof pausing._unpause !== 'function') return () => {}
  // Said in the same turn as the end of the connection.
  return listen(pausing, ['reconnecting'], () => {
    pausing._pause?.()
    const goOn = (): void => {
      clearImmediate(turn)
      stopListening()
      pausing._unpause?.()
    }
    // Behind the driver's own, which is due by now.
    const turn = setImmediate(goOn)
    // Also if all this is ended meanwhile: a client that is paused does not greet its next connection, and never is ready again.
    const stopListening = listen(pausing, ['connect'], goOn)
  })
}
