// What the adapters share: a library's lock in the shape that the lab's clients use.
import { LockTimeoutError, StoreUnavailableError } from '../../dist/index.js'

/** A mistake in code is not the network's. */
const MISTAKES = [TypeError, RangeError, ReferenceError, SyntaxError]
/** What is believed is believed at the moment it is asked. None of these leases says for how long it will be good. */
const BELIEF_MS = 1

/**
 * @typedef {object} Taken
 * @property {bigint} [token] where the library has fencing tokens
 * @property {AbortSignal} signal aborts when the library says that the lock is lost
 * @property {() => boolean} held what the library says without being asked at the server
 * @property {() => boolean | Promise<boolean>} sure what careful code asks before it writes
 * @property {() => Promise<'released' | 'expired'>} release
 */

/**
 * @param {{ take: (name: string, waitMs: number) => Promise<Taken | null>, close: () => unknown, companion?: number, stalls?: (heard: (ms: number) => void) => void }} library
 */
export function labClient({ take, close, ...rest }) {
  const ask = async (name, waitMs) => {
    try {
      const taken = await take(name, waitMs)
      return taken === null ? null : leaseOf(name, taken)
    } catch (error) {
      throw told(error)
    }
  }
  const mutex = (name) => ({
    name,
    async acquire({ wait }) {
      const lease = await ask(name, wait)
      if (lease === null) throw new LockTimeoutError('not given in time', { waited: wait })
      return lease
    },
    tryAcquire: () => ask(name, 0),
  })
  const mutexesAlone = () => {
    throw new Error('other libraries are led through the lab with mutexes alone')
  }
  return {
    store: {},
    mutex,
    readWriteLock: mutexesAlone,
    semaphore: mutexesAlone,
    close: async () => void (await close()),
    ...rest,
  }
}

function leaseOf(name, { token, signal, held, sure, release }) {
  let over = false
  const lost = new AbortController()
  // What becomes of it once it was given back concerns nobody.
  signal.addEventListener('abort', () => over || lost.abort(signal.reason), { once: true })
  const holds = () => !over && !signal.aborted && held()
  return {
    name,
    // Grants are told apart by it; no check asks more of it where a library has none.
    token: token ?? process.hrtime.bigint(),
    signal: lost.signal,
    get held() {
      return holds()
    },
    remaining: () => (holds() ? BELIEF_MS : 0),
    // A question that is not answered is no reason to write.
    sure: async () => holds() && (await attempt(sure)),
    async release() {
      over = true
      try {
        return await release()
      } catch (error) {
        throw told(error)
      }
    },
  }
}

/** In the lab's words: an error of the network's is one that may come while a fault is there. */
function told(error) {
  if (!(error instanceof Error) || MISTAKES.some((kind) => error instanceof kind)) return error
  return new StoreUnavailableError(`${error.name}: ${error.message}`)
}

async function attempt(ask) {
  try {
    return await ask()
  } catch {
    return false
  }
}
