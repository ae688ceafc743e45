export { openZooKeeperStore, zookeeperStore } from './open.ts'
export type { ConnectOptions, ZooKeeperStoreOptions } from './open.ts'
export { requestRevocation } from './revocation.ts'
export { czxidOf } from './token.ts'
