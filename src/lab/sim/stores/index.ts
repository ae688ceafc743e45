import type { StoreKind } from '../types.ts'
import type { Backend, BackendOptions } from './backend.ts'
import { casBackend } from './cas.ts'
import { claimQueueBackend } from './claim-queue.ts'
import { quorumBackend } from './quorum.ts'
import { redisBackend } from './redis.ts'
import { sessionBackend } from './session.ts'

const BACKENDS: Record<StoreKind, (options: BackendOptions) => Backend> = {
  'claim-queue': claimQueueBackend,
  redis: redisBackend,
  session: sessionBackend,
  cas: casBackend,
  quorum: quorumBackend,
}

export function backendFor(kind: StoreKind, options: BackendOptions): Backend {
  return BACKENDS[kind](options)
}
