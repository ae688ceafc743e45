export { ZooKeeper } from './client.ts'
export type {
  CreateOptions,
  ReadOptions,
  SingleWrite,
  StateListener,
  Write,
  WriteResult,
  ZooKeeperOptions,
} from './options.ts'
export { ZooKeeperError, hasCode } from './errors.ts'
export type { ZooKeeperErrorCode } from './errors.ts'
export type { Written } from './merging.ts'
export type { Children, Created, Identity, NodeData } from './operations.ts'
export { CREATOR_ACL, OPEN_ACL, PERMISSIONS } from './records.ts'
export type { Acl, CreateMode, Stat } from './records.ts'
export { parseConnectString } from './servers.ts'
export type { ConnectString, ServerAddress } from './servers.ts'
export type { AuthInfo, SessionState } from './session.ts'
export type { WatchEvent, WatchEventType, Watcher } from './watches.ts'
