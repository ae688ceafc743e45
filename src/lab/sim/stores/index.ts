import type { StoreKind } from '../types.ts'
import type { Backend, BackendOptions } from './backend.ts'
import { casBackend } from './cas.ts'
import { claimQueueBackend } from './claim-queue.ts'
import { redisBackend } from './redis.ts'
import { sessionBackend } from './session.ts'

const BACKENDS: Partial<Record<StoreKind, (options: BackendOptions) => Backend>> = {
  'claim-queue': claimQueueBackend,
  redis: redisBackend,
  session: sessionBackend,
  cas: casBackend,
}

export function backendFor(kind: StoreKind, options: BackendOptions): Backend {
  const make = BACKENDS[kind]
  if (make === undefined) throw new Error(`there is no simulated ${kind} store`)
  return make(options)
}
