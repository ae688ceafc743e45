/**
 * What users write, and what they must not be able to write: `tsc` is the test, with `exactOptionalPropertyTypes` as users may
 * have it. An option that may be undefined is as good as none.
 */
import { Holdfast } from 'holdfast'
import type { Lease, Lock } from 'holdfast'
import { memoryStore } from 'holdfast/memory'

interface Maybe {
  readonly signal: AbortSignal | undefined
  readonly ms: number | undefined
  readonly yes: boolean | undefined
  readonly text: string | undefined
}

export function options({ signal, ms, yes, text }: Maybe): unknown[] {
  const store = memoryStore()
  const holdfast = new Holdfast(store, {
    ttl: ms,
    wait: ms,
    owner: text,
    turn: { ms, count: ms },
    patience: ms,
    requestTimeout: ms,
    closeStore: yes,
    leakWarnings: yes,
    clock: { wall: yes },
  })
  const mutex = holdfast.mutex('x', { ttl: ms, reentrant: yes, fair: undefined, renew: yes, maxHold: ms })
  const semaphore = holdfast.semaphore('s', 2, { wait: ms })
  return [
    mutex.acquire({ signal, wait: ms, ttl: ms, maxHold: ms }),
    mutex.run((lease) => lease.assertHeld({ atLeast: ms }), { signal }),
    semaphore.tryAcquire({ signal, permits: ms }),
    holdfast.all(['x'], { reentrant: yes }).tryAcquire({ signal }),
    holdfast.list({ prefix: text, limit: ms, cursor: text }),
    holdfast.striped('x', 4).for(17),
  ]
}

type Mixed = 1 | Promise<string>

/** A body may return a value, a promise, or now one and now the other. */
export function results(holdfast: Holdfast, mutex: Lock, mixed: () => Mixed): readonly Promise<unknown>[] {
  const value: Promise<number> = mutex.run(() => 1)
  const promised: Promise<string> = mutex.run(() => Promise.resolve('a'))
  const either: Promise<1 | string> = mutex.run(mixed)
  const nothing: Promise<void> = mutex.run(() => {})
  const named: Promise<number> = mutex.run<number>(() => Promise.resolve(1))
  const set: Promise<1 | string> = holdfast.all(['x']).run(mixed)
  const permits: Promise<1 | string> = holdfast.semaphore('s', 2).run(mixed, { permits: 1 })
  const outside: Mixed = holdfast.outside(mixed)
  return [value, promised, either, nothing, named, set, permits, Promise.resolve(outside)]
}

/** A program's own function around it, which leaves the type to its callers. */
export function wrapped<T>(mutex: Lock, body: () => Promise<T>): readonly Promise<T | Awaited<T>>[] {
  return [mutex.run(body), mutex.run(async () => body()), mutex.run<T>(body)]
}

export function refused(mutex: Lock, lease: Promise<Lease>): unknown[] {
  return [
    // @ts-expect-error -- a typo
    mutex.acquire({ wiat: 1 }),
    // @ts-expect-error -- tryAcquire does not wait
    mutex.tryAcquire({ wait: 1 }),
    // @ts-expect-error -- permits are a semaphore's
    mutex.acquire({ permits: 2 }),
    // @ts-expect-error -- the body is not optional
    mutex.run(),
    // @ts-expect-error -- the lease is not there yet
    lease.token,
    // @ts-expect-error -- a store, not a URL
    new Holdfast('redis://localhost'),
  ]
}
