/** A real server of one's own, on a free loopback port. It ends with the process that started it, however that ends. */
export interface Server {
  readonly host: string
  readonly port: number
  readonly url: string
  /** Of the process that runs now; `undefined` while none does. */
  readonly pid: number | undefined
  /** Its working folder, with its data and `server.log`. Removed at stop, unless the caller brought it. */
  readonly dir: string
  /** Ends it in an orderly way and removes its folder. To stop twice is to stop once. */
  stop(): Promise<void>
  /** Sends a signal (SIGKILL unless told); one that ends the process is waited for. */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Starts it again on the same port, after an orderly end if it still runs. Data is kept unless told otherwise. */
  restart(options?: { keepData?: boolean }): Promise<void>
  /** Freezes it: connections stay open and nothing is answered. */
  pause(): Promise<void>
  resume(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface ServerOptions {
  /** Added to the program's arguments; what is said here wins. */
  readonly args?: readonly string[]
  /** A folder to work in; it is kept at stop. */
  readonly dir?: string
  readonly port?: number
  /** Added to the server's environment, e.g. that of a {@link ClockShim}. */
  readonly env?: Readonly<Record<string, string>>
}

/** Redis without persistence, unless `args` ask for it. */
export function redis(options?: ServerOptions): Promise<Server>

/** A MariaDB with a database `test` and a root without password. Commits survive SIGKILL, not a power cut. */
export function mariadb(options?: ServerOptions): Promise<Server>

/** Which of the two {@link mariadb} starts: MySQL only where it was chosen to run the tests on. */
export const mysqlFlavour: 'MariaDB' | 'MySQL'

/** A PostgreSQL with a superuser without password. Commits survive SIGKILL, not a power cut. */
export function postgres(options?: ServerOptions): Promise<Server>

/** A PgBouncer in transaction mode before a PostgreSQL: each transaction may get another connection. */
export function pgbouncer(options: { readonly upstream: Server }): Promise<Server>

/** The path of a Chromium, installed if that is possible. */
export function chromium(): Promise<string>

/** A memcached. It keeps nothing on disk: a restart begins empty. */
export function memcached(options?: ServerOptions): Promise<Server>

/** Commands to the group go to every member; `host`, `port` and the like are those of the first sentinel. */
export interface SentinelGroup extends Server {
  /** The name under which the sentinels know the primary. */
  readonly name: string
  readonly sentinels: readonly Server[]
  /** All that hold data; the first began as the primary. */
  readonly nodes: readonly Server[]
  /** The node that the sentinels take for the primary now. */
  primary(): Promise<Server | undefined>
}

/** One primary with replicas, watched by sentinels that fail over within seconds. */
export function sentinel(options?: {
  readonly replicas?: number
  readonly sentinels?: number
  /** For the servers that hold data. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** How long a primary has to be silent to be called down, in milliseconds. */
  readonly downAfter?: number
}): Promise<SentinelGroup>

/** Commands to the group go to every member. */
export interface RedisCluster extends Server {
  readonly nodes: readonly Server[]
  /** Those that began as primaries, each with an equal part of the slots. */
  readonly primaries: readonly Server[]
  readonly replicas: readonly Server[]
}

/** A Redis Cluster; `replicas` is the number for each primary. */
export function redisCluster(options?: {
  readonly primaries?: number
  readonly replicas?: number
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** How long a node has to be silent to be called down, in milliseconds. */
  readonly nodeTimeout?: number
}): Promise<RedisCluster>

export interface ZooKeeperOptions extends ServerOptions {
  /** Lines of its zoo.cfg. Sessions may last from 300 ms to 100 s unless told otherwise. */
  readonly config?: Readonly<Record<string, string | number | boolean>>
  /** Further options of its JVM. */
  readonly java?: readonly string[]
}

/** One ZooKeeper server. It keeps its data over a restart. */
export function zookeeper(options?: ZooKeeperOptions): Promise<Server>

/** Commands to the group go to every member. */
export interface ZooKeeperEnsemble extends Server {
  readonly servers: readonly Server[]
  /** The server that leads now. */
  leader(): Promise<Server | undefined>
  /** One that follows. */
  follower(): Promise<Server | undefined>
  /** Waits until all that run serve clients. */
  serving(): Promise<void>
}

/** Servers that elect a leader; three unless told otherwise. */
export function zookeeperEnsemble(
  options?: Omit<ZooKeeperOptions, 'args' | 'dir' | 'port'> & { readonly size?: number },
): Promise<ZooKeeperEnsemble>

/** One of ZooKeeper's short commands (`ruok`, `srvr`, `mntr`, `wchs` …). */
export function fourLetters(
  at: { readonly host: string; readonly port: number },
  word: string,
): Promise<string>

/** Compiles Java sources against Curator; the result gives the command line that runs one of the classes. */
export function curator(options: {
  readonly sources: readonly string[]
  readonly dir: string
}): Promise<(main: string, ...args: string[]) => string[]>

/** A wall clock that can be moved for one server, on Linux. */
export interface ClockShim {
  /** For the options of the server that is to live in this time. */
  readonly env: Readonly<Record<string, string>>
  /** Moves the clock by that many milliseconds from where it is now; negative is back in time. */
  jump(ms: number): void
  dispose(): void
}

export function clockShim(): Promise<ClockShim>

export type Service =
  | 'redis'
  | 'sentinel'
  | 'redis-cluster'
  | 'memcached'
  | 'mariadb'
  | 'postgres'
  | 'pgbouncer'
  | 'cc'
  | 'zookeeper'
  | 'zookeeper-ensemble'
  | 'curator'
  | 'chromium'

/**
 * Whether tests that need this can run, for `describe.skipIf(!available('redis'))`. In CI the answer is always yes:
 * what is missing there fails instead of being left out.
 */
export function available(name: Service): boolean

/** One command on a connection of its own, without any driver. Errors of the server are thrown. */
export function redisCommand(
  at: { readonly host: string; readonly port: number; readonly timeout?: number },
  ...words: readonly (string | number)[]
): Promise<unknown>
