import { EventEmitter } from 'node:events'

import type { ClaimRequest } from 'holdfast/store'

export const CLAIM: ClaimRequest = {
  name: 'x',
  id: 'ann.1',
  weight: 1,
  capacity: 1,
  ttl: 1_000,
  patience: 500,
  tokens: 1,
  whenBusy: 'try',
  owner: 'test',
}

/** What `createCluster` of node-redis knows of a Cluster with one primary. */
export class FakeCluster extends EventEmitter {
  readonly isOpen = true
  readonly masters: readonly object[] = [{ address: '127.0.0.1:1' }]
  readonly replicas: readonly object[] = []
  readonly slots: readonly object[] = Array.from({ length: 16_384 }, () => ({ master: this.masters[0] }))
}
