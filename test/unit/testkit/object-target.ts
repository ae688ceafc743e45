import type { Target } from '../../../src/testkit/case.ts'
import { VirtualEnv } from '../../../src/testkit/virtual-env.ts'
import { ObjectDatabase } from './object-store.ts'
import type { Cross, ObjectStore } from './object-store.ts'

/** A database of its own on a virtual clock; every client crosses a network of its own. */
export function objectTarget(
  seed: number,
  Client: new (db: ObjectDatabase, cross: Cross, env: VirtualEnv) => ObjectStore,
): Target {
  const env = new VirtualEnv({ seed })
  const db = new ObjectDatabase(() => env.instant())
  const cross: Cross = () => env.sleep(env.random() * 4)
  return { name: 'object', env, createStore: () => new Client(db, cross, env) }
}
