import { printable } from '../../../core/printing.ts'
import { callSafely } from './call-safely.ts'
import { ZooKeeperError, hasCode } from './errors.ts'
import type { Written } from './merging.ts'
import { failureOf, multi } from './multi.ts'
import * as ops from './operations.ts'
import type { Children, Created, Identity, NodeData, Operation } from './operations.ts'
import type {
  CreateOptions,
  ReadOptions,
  SingleWrite,
  StateListener,
  Write,
  WriteResult,
  ZooKeeperOptions,
} from './options.ts'
import { Chroot, ancestry, checkPath } from './paths.ts'
import { OPEN_ACL } from './records.ts'
import type { Acl, Stat } from './records.ts'
import { bytesOf, creation, mergeable, partOf } from './writes.ts'
import { checkAddress, parseConnectString } from './servers.ts'
import type { ServerAddress } from './servers.ts'
import { Session, checkAuth } from './session.ts'
import type { AuthInfo, SessionState } from './session.ts'
import { isWithin, momentOf, NEVER } from './moment.ts'
import { now, wall } from './time.ts'
import type { WatchEvent, WatchKind, Watcher } from './watches.ts'

const EMPTY = new Uint8Array(0)
const MAX_REQUEST = 0xf_ffff
const MAX_REPLY = 16 * 1024 * 1024
/** A lease may be believed in for two thirds of the timeout; half of the rest is for the time since the last write. */
const CONFIRM_PER_TIMEOUT = 6
const CLOCKS = { mono: now, wall }
/** By the server's numbers. */
const LASTING_MODES: Readonly<Record<string, 0 | 1 | undefined>> = { persistent: 0, recursive: 1 }
const LASTING = ['persistent', 'recursive'] as const
const ALL_KINDS = ['data', 'exists', 'children', ...LASTING] as const
/** Which watches of a path a server gives up with one of these. */
const TAKEN_WITH: Readonly<Record<Exclude<WatchKind, 'exists'>, readonly WatchKind[]>> = {
  data: ['data', 'exists', ...LASTING],
  children: ['children', ...LASTING],
  persistent: ALL_KINDS,
  recursive: ALL_KINDS,
}

/**
 * A ZooKeeper session. It dials at once and keeps dialling; requests fail with `CONNECTION_LOSS` while no server is
 * connected and are never sent later. After `expired`, `auth-failed` or `closed` make a new one.
 */
export class ZooKeeper implements AsyncDisposable {
  private readonly session: Session
  /** Paths of watches that are on their way to the server, and how many. */
  private readonly asked = new Map<string, number>()
  private readonly chroot: Chroot
  private readonly listeners = new Set<StateListener>()
  private readonly hurries = new Set<() => number>()
  /** When the last write left that a majority carried out. */
  private committed = NEVER

  constructor(connect: string | readonly ServerAddress[], options: ZooKeeperOptions = {}) {
    const { servers, chroot } =
      typeof connect === 'string' ? parseConnectString(connect) : { servers: connect, chroot: '' }
    const { sessionTimeout = 30_000, maxRequest = MAX_REQUEST, maxReply = MAX_REPLY, firstXid = 1 } = options
    if (servers.length === 0) throw new ZooKeeperError('BAD_ARGUMENTS', 'No server to connect to')
    servers.forEach(checkAddress)
    if (!Number.isInteger(sessionTimeout) || sessionTimeout < 1 || sessionTimeout > 2 ** 31 - 1) {
      throw new ZooKeeperError('BAD_ARGUMENTS', 'sessionTimeout must be a whole number of milliseconds')
    }
    const { auth = [] } = options
    if (!Array.isArray(auth)) throw new ZooKeeperError('BAD_ARGUMENTS', 'auth must be a list')
    auth.forEach(checkAuth)
    this.chroot = new Chroot(options.chroot ?? chroot)
    const settings = {
      servers,
      timeout: sessionTimeout,
      tls: options.tls,
      limits: { request: maxRequest, reply: maxReply },
      auth,
      firstXid,
      background: options.background ?? false,
      needed: () => Math.min(Infinity, ...Array.from(this.hurries, (needed) => needed())),
    }
    this.session = new Session(settings, {
      state: (state, error) => {
        for (const listener of this.listeners) callSafely(() => listener(state, error))
      },
      notified: (event) => this.notified(event),
    })
  }

  get state(): SessionState {
    return this.session.state
  }

  /** 0n until the first server answered. */
  get sessionId(): bigint {
    return this.session.credentials.id
  }

  /** Milliseconds, as negotiated. */
  get sessionTimeout(): number {
    return this.session.timeout
  }

  /**
   * Milliseconds for which the session lives at least, by our own clock: its timeout from the sending of the last request that was
   * answered. 0: it may have ended. Behind a follower it may end earlier, by what the follower has not told its leader yet.
   */
  get sessionRemaining(): number {
    const { provenAt, timeout, over } = this.session
    return over || this.sessionId === 0n ? 0 : Math.max(0, provenAt + timeout - now())
  }

  /** The node below which all paths lie; '' when there is none. */
  get chrootPath(): string {
    return this.chroot.root
  }

  /** Paths that are watched. */
  get watchCount(): number {
    return this.session.watches.size
  }

  /**
   * Calls at every change of `state`; while `connecting`, also when every server was tried once more in vain. Returns how to
   * end that.
   */
  onState(listener: StateListener): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  /** Resolves once connected; rejects when that cannot happen any more. */
  connected(): Promise<void> {
    if (this.state === 'connected') return Promise.resolve()
    return new Promise((resolve, reject) => {
      const settle: StateListener = (state, error) => {
        if (state === 'connected') resolve()
        else if (this.session.over) reject(error ?? new ZooKeeperError('CLOSED', 'The session is over'))
        else return
        this.listeners.delete(settle)
      }
      this.listeners.add(settle)
      if (this.session.over) settle(this.state, undefined)
    })
  }

  create(path: string, options: CreateOptions = {}): Promise<Created> {
    return this.send(() => creation(path, options, this.chroot)).then((created) => this.localCreated(created))
  }

  /** Creates a node and all that is missing above it, as containers unless told otherwise. In one flight. */
  async createPath(path: string, { mode = 'container', acl = OPEN_ACL }: CreateOptions = {}): Promise<void> {
    checkPath(path)
    const missing = ancestry(this.chroot.full(path)).map((at) =>
      this.session.request(ops.create({ path: at, data: EMPTY, acl, mode, ttl: 0 })),
    )
    const results = await Promise.allSettled(missing)
    // Of what is there already, and lies where we may create nothing, servers say that, and not that it is there.
    const last = results.at(-1)
    if (last?.status !== 'rejected' || hasCode(last.reason, 'NODE_EXISTS')) return
    for (const result of results) {
      if (result.status === 'rejected' && !hasCode(result.reason, 'NODE_EXISTS')) throw result.reason
    }
  }

  delete(path: string, version: number = ops.ANY_VERSION): Promise<void> {
    return this.send(() => ops.remove(this.full(path), version))
  }

  /** Null: there is no such node. A watch is set all the same. */
  exists(path: string, { watch }: ReadOptions = {}): Promise<Stat | null> {
    return this.send(() => {
      const operation = ops.exists(this.full(path), watch !== undefined)
      if (watch === undefined) return operation
      return this.watching(operation, watch, (errno) =>
        errno === 0 ? 'data' : errno === ops.NO_NODE_ERRNO ? 'exists' : null,
      )
    })
  }

  getData(path: string, { watch }: ReadOptions = {}): Promise<NodeData> {
    return this.send(() => {
      const operation = ops.getData(this.full(path), watch !== undefined)
      return watch === undefined
        ? operation
        : this.watching(operation, watch, (errno) => (errno === 0 ? 'data' : null))
    })
  }

  setData(path: string, data: Uint8Array | string, version: number = ops.ANY_VERSION): Promise<Stat> {
    return this.send(() => ops.setData(this.full(path), bytesOf(data), version))
  }

  getChildren(path: string, { watch }: ReadOptions = {}): Promise<Children> {
    return this.send(() => {
      const operation = ops.getChildren(this.full(path), watch !== undefined)
      return watch === undefined
        ? operation
        : this.watching(operation, watch, (errno) => (errno === 0 ? 'children' : null))
    })
  }

  getAcl(path: string): Promise<{ acl: Acl[]; stat: Stat }> {
    return this.send(() => ops.getAcl(this.full(path)))
  }

  setAcl(path: string, acl: readonly Acl[], version: number = ops.ANY_VERSION): Promise<Stat> {
    return this.send(() => ops.setAcl(this.full(path), acl, version))
  }

  /** Waits until this client's server has seen all that its leader had when asked: the reads that follow are not stale. */
  sync(path = '/'): Promise<void> {
    return this.send(() => ops.sync(this.full(path)))
  }

  /**
   * As `sync`, and by the word of a majority. A leader that was cut off and does not know that there is another one answers `sync` by
   * itself; only a write needs the others. A new leader gives every session its whole timeout, so one write now and then is enough.
   */
  confirm(path: string): Promise<void> {
    if (isWithin(this.committed, this.sessionTimeout / CONFIRM_PER_TIMEOUT, CLOCKS)) return this.sync(path)
    return this.commits(this.transaction([{ kind: 'check', path, version: ops.ANY_VERSION }])).then(
      () => undefined,
      (error: unknown) => {
        // Refused by the majority is as good: the session stands.
        if (!hasCode(error, 'NO_NODE')) throw error
      },
    )
  }

  /** The ephemeral nodes of this session below a path. */
  getEphemerals(prefix = '/'): Promise<string[]> {
    return this.send(() => ops.getEphemerals(this.full(prefix))).then((paths) =>
      paths.map((path) => this.chroot.local(path)),
    )
  }

  whoAmI(): Promise<Identity[]> {
    return this.send(() => ops.whoAmI())
  }

  /**
   * One write, which shares a transaction with others that are asked for in the same turn of the event loop: for a server, many of
   * them then cost little more than one. Each succeeds or fails by itself, and all happen in the order in which they were
   * asked for, before any request that was asked for later; only if one is refused, those that were sent with it
   * happen after what had been asked for meanwhile.
   */
  write(write: SingleWrite): Promise<Written> {
    try {
      const written = this.commits(this.session.write(mergeable(write, this.chroot)))
      return this.chroot.root === '' ? written : written.then((one) => this.localCreated(one))
    } catch (error) {
      return Promise.reject(error as Error)
    }
  }

  /** All of the writes or none. Rejects with the refusal of the first that failed. */
  async transaction(writes: readonly Write[]): Promise<WriteResult[]> {
    const parts = writes.map((write) => partOf(write, this.chroot))
    const results = await this.session.request(multi(parts))
    const failure = failureOf(results, parts)
    if (failure !== undefined) throw failure
    return results.map((result, index) =>
      writes[index]?.kind === 'create' ? this.localCreated(result as Created) : (result as WriteResult),
    )
  }

  /** Calls at every change of a node, or of everything below it, until `unwatch`. Needs servers from 3.6 on. */
  addWatch(path: string, kind: 'persistent' | 'recursive', watcher: Watcher): Promise<void> {
    return this.send(() => {
      const mode = LASTING_MODES[kind]
      if (mode === undefined)
        throw new ZooKeeperError('BAD_ARGUMENTS', 'addWatch is for persistent and recursive watches')
      return this.watching(ops.addWatch(this.full(path), mode), watcher, (errno) =>
        errno === 0 ? kind : null,
      )
    })
  }

  /** Takes a watcher back. The server is told when it was the last one there; `false`: it was not set, or has fired. */
  unwatch(path: string, kind: Exclude<WatchKind, 'exists'>, watcher: Watcher): boolean {
    const { watches } = this.session
    const full = this.full(path)
    const kinds: readonly WatchKind[] = kind === 'data' ? ['data', 'exists'] : [kind]
    const last = kinds.map((one) => watches.delete(one, full, watcher)).some(Boolean)
    // The server has one watch for a path: to take it back would also take that which somebody is just asking for, and lasting
    // ones stand where the others do.
    if (!last || this.asked.has(full) || TAKEN_WITH[kind].some((one) => watches.has(one, full))) return last
    const type = kind === 'children' ? 1 : kind === 'data' ? 2 : 3
    // If it does not get there, the watch fires for nobody.
    this.session.request(ops.removeWatches(full, type)).catch(() => undefined)
    return true
  }

  addAuth(info: AuthInfo): void {
    checkAuth(info)
    this.session.addAuth(info)
  }

  /** Whether the open session keeps the process alive. While a store has claims on it, it does. */
  keepAlive(kept: boolean): void {
    this.session.keep(kept)
  }

  /** One user more or less, for whose sake it keeps the process alive whatever `keepAlive` says. */
  use(change: 1 | -1): void {
    this.session.use(change)
  }

  /**
   * A silent server is left as soon as if the session were no longer than that many milliseconds, at each moment: for who believes in
   * something for a shorter time than the session lasts. It is asked at once, and from then on at each look. Returns how to end that.
   */
  hurry(needed: () => number): () => void {
    this.hurries.add(needed)
    this.session.hurry()
    return () => void this.hurries.delete(needed)
  }

  /** Ends the session: its ephemeral nodes go at once. */
  close(): Promise<void> {
    return this.session.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Notes when a write left that was carried out. */
  private commits<T>(writing: Promise<T>): Promise<T> {
    const sent = momentOf(CLOCKS)
    const done = (): void => {
      if (sent.mono > this.committed.mono) this.committed = sent
    }
    writing.then(done, (error: unknown) => {
      if (hasCode(error, 'NO_NODE')) done()
    })
    return writing
  }

  private send<T>(operation: () => Operation<T>): Promise<T> {
    try {
      const asked = operation()
      const answer = this.session.request(asked)
      if (asked.replied !== undefined && asked.path !== undefined) this.countAsked(asked.path, answer)
      return answer
    } catch (error) {
      return Promise.reject(error as Error)
    }
  }

  private countAsked(path: string, answer: Promise<unknown>): void {
    this.asked.set(path, (this.asked.get(path) ?? 0) + 1)
    const settled = (): void => {
      const left = (this.asked.get(path) ?? 1) - 1
      if (left > 0) this.asked.set(path, left)
      else this.asked.delete(path)
    }
    answer.then(settled, settled)
  }

  private watching<T>(
    operation: Operation<T>,
    watcher: Watcher,
    kindFor: (errno: number) => WatchKind | null,
  ): Operation<T> {
    operation.replied = (errno) => {
      const kind = kindFor(errno)
      if (kind !== null && operation.path !== undefined)
        this.session.watches.add(kind, operation.path, watcher)
    }
    return operation
  }

  private notified({ type, path }: WatchEvent): void {
    const event = { type, path: this.chroot.local(path) }
    for (const watcher of this.session.watches.fired({ type, path })) callSafely(() => watcher(event))
  }

  private localCreated<T extends Pick<Created, 'path'>>(created: T): T {
    return { ...created, path: this.chroot.local(created.path) }
  }

  private full(path: string): string {
    checkPath(path)
    return this.chroot.full(path)
  }
}

// Not its credentials: whoever has the session's password can take the session over.
printable(ZooKeeper, 'ZooKeeper', ({ state, sessionTimeout, watchCount }) => ({
  state,
  sessionTimeout,
  watchCount,
}))
