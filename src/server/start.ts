import { randomBytes } from 'node:crypto'
import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

import { checkOptions } from '../core/arguments.ts'
import type { Store } from '../core/contract.ts'
import { InvalidArgumentError } from '../core/errors.ts'
import { App } from './app.ts'
import { Audit } from './audit.ts'
import { ClaimRegistry } from './claim-registry.ts'
import { capabilitiesOf } from './capabilities.ts'
import { Connections } from './connections.ts'
import { ClaimsFile } from './embedded/claims-file.ts'
import { systemClocks } from './embedded/clocks.ts'
import { HorizonFile } from './embedded/horizon-file.ts'
import { Horizon } from './embedded/horizon.ts'
import { EmbeddedStore } from './embedded/store.ts'
import { bookFormer } from './former-claims.ts'
import { checkHosts, checkOrigins, Gate } from './gate.ts'
import { makeHttpServer } from './http-server.ts'
import { limitsWithin, resolveLimits } from './limits.ts'
import { assertSafe, DEFAULT_LISTEN, listen, parseListen } from './listen.ts'
import type { ListenAt } from './listen.ts'
import { LongPolls } from './long-polls.ts'
import { SERVER_OPTIONS } from './options.ts'
import type { RunningServer, ServerOptions } from './options.ts'
import { Outbox } from './outbox.ts'
import { lockPath } from './path-lock.ts'
import type { PathLock } from './path-lock.ts'
import { Problems } from './problems.ts'
import { Readiness } from './readiness.ts'
import { reload } from './reload.ts'
import { withoutOffer } from './reoffer.ts'
import { ANYBODY } from './rights.ts'
import { eventRoutes } from './routes/events.ts'
import { leaseRoutes } from './routes/leases.ts'
import { lockRoutes } from './routes/locks.ts'
import { operationRoutes } from './routes/operations.ts'
import { statusRoutes } from './routes/status.ts'
import { Running } from './running.ts'
import { LockService } from './service.ts'
import { Sessions } from './sessions.ts'
import { behindLinks, defaultStatePath } from './state-path.ts'
import { StreamCounts } from './stream-counts.ts'
import { Streams } from './stream/streams.ts'
import { readTokens } from './tokens.ts'

/** Starts a lock server. Resolves when it listens; whether it grants locks yet, `ready` tells. */
export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  checkOptions(options, SERVER_OPTIONS, 'listen')
  const at = parseListen(options.listen ?? DEFAULT_LISTEN)
  const wished = resolveLimits(options.limits)
  const tokens = options.tokensFile === undefined ? null : readTokens(options.tokensFile)
  const { tls, insecure = false, hosts = [], origins = [] } = options
  checkHosts(hosts)
  checkOrigins(origins)
  assertSafe(at, { tls: tls !== undefined, tokens: tokens !== null, insecure })

  const server = makeHttpServer(options, wished)
  const connections = new Connections(server, wished)
  const outbox = new Outbox(server, wished)
  const problems = new Problems(options.log)
  const path = statePathOf(options, at)
  // First of all: a second server at this address, or with this file, must not touch the state of the first.
  const stateLock = path === null ? null : await lockState(path)
  try {
    await listen(server, at)
    // No request is heard before the rest is done, for none of it waits.
    const { store, own } = openStore(options, path, problems)
    const limits = limitsWithin(wished, store.capabilities)
    const registry = new ClaimRegistry(store.kind)
    const former = own === null ? 0 : bookFormer(registry, own, tokens)
    if (former > 0) problems.say('info', 'start', `Goes on with claims of the former run: ${former}`)
    const audit = new Audit(options.audit, problems)
    const isGone = (who: string): boolean =>
      tokens === null ? who !== ANYBODY.name : tokens.named(who) === null
    const sessions = new Sessions(store, registry, limits, isGone)
    const { auditRequired = false } = options
    const service = new LockService({ store, registry, sessions, audit, limits, auditRequired, problems })
    const retryAudit = (): void => void audit.flush()
    const readiness = new Readiness({ store, own, problems, auditRequired, retryAudit })
    service.onUnknown = () => {
      if (own === null && service.state.kind !== 'stopping') readiness.doubt()
    }
    const counts = new StreamCounts(limits)
    const polls = new LongPolls(service, sessions, counts, own !== null)
    const hello = {
      kind: 'hello',
      store: store.kind,
      capabilities: capabilitiesOf(store, limits, at),
      downgrade: store.downgrade !== undefined,
    } as const
    const requests = registry.metrics.counter('holdfast_http_requests_total', 'HTTP requests by status.')
    const app = new App({
      gate: new Gate({ hosts: at.kind === 'tcp' ? [...hosts, bracketed(at.host)] : hosts, origins, tokens }),
      routes: [
        ...leaseRoutes(service, polls),
        ...lockRoutes(service),
        ...eventRoutes(service, counts, outbox),
        ...operationRoutes({ service, sessions, counts, hello }),
        ...statusRoutes(service, readiness),
      ],
      limits,
      connections,
      outbox,
      onRequest: (status) => requests.add('status', String(status)),
      onRefusal: (caller, what, failure) => service.refusals.note(caller, what, failure),
      onFault: (error, request) => problems.fault(error, request),
    })
    const streams = new Streams(
      app,
      { service, sessions, limits, outbox, hello },
      {
        connections,
        counts,
        ignore: (request, socket, head) => withoutOffer(server, request, socket, head),
      },
    )
    registry.metrics.gauge('holdfast_sessions', 'Sessions of remote stores.', () => streams.size)
    registry.metrics.gauge('holdfast_connections', 'Open connections.', () => connections.size)
    registry.metrics.gauge(
      'holdfast_unread_bytes',
      'Answers that no client has taken yet.',
      () => outbox.size,
    )
    registry.metrics.gauge('holdfast_memory_bytes', 'Memory of the process.', () => process.memoryUsage.rss())
    registry.metrics.gauge('holdfast_ready', '1 when locks are granted.', () =>
      service.state.kind === 'ready' && readiness.known() === null ? 1 : 0,
    )
    for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, app.handle)
    server.on('upgrade', streams.upgrade)
    const { tokensFile } = options
    const reloading = { server, tokens, tokensFile, audit, problems }
    const parts = { server, connections, service, sessions, polls, streams, registry, audit, own, stateLock }
    return new Running(
      { ...parts, reload: (files) => reload(reloading, files) },
      { ...addressOf(server, at, tls !== undefined), startsIn: own?.startsIn ?? 0 },
    )
  } catch (error) {
    server.close()
    stateLock?.release()
    throw error
  }
}

interface OpenStore {
  readonly store: Store
  /** The same, if it ends with the server. */
  readonly own: EmbeddedStore | null
}

function statePathOf({ store, state }: ServerOptions, at: ListenAt): string | null {
  if (store !== undefined) return null
  const path = state === undefined ? defaultStatePath(at) : state
  return path === null ? null : behindLinks(path)
}

/** Two servers with one file would each forget what the other promised. */
async function lockState(path: string): Promise<PathLock> {
  const lock = await lockPath(path)
  if (lock !== null) return lock
  throw new InvalidArgumentError(
    `The state file ${path} is in use by another lock server. Give each server a state file of its own.`,
    { argument: 'state' },
  )
}

function openStore({ store }: ServerOptions, path: string | null, problems: Problems): OpenStore {
  if (store !== undefined) return { store, own: null }
  const clocks = systemClocks()
  if (path === null) {
    const own = new EmbeddedStore(null, clocks)
    return { store: own, own }
  }
  const file = new HorizonFile(path, randomBytes(8).toString('hex'))
  const onWrite = (failure: unknown): void => problems.note('state', failure)
  const horizon = new Horizon({ file, clocks, onWrite })
  const own = new EmbeddedStore({ horizon, claims: new ClaimsFile(path), onFailure: onWrite }, clocks)
  return { store: own, own }
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

function addressOf(
  server: HttpServer | HttpsServer,
  at: ListenAt,
  tls: boolean,
): { url: string; http: string | null; address: string } {
  if (at.kind === 'unix') return { url: `holdfast+unix:${at.path}`, http: null, address: `unix:${at.path}` }
  const address = `${bracketed(at.host)}:${(server.address() as AddressInfo).port}`
  return {
    url: `holdfast${tls ? 's' : ''}://${address}`,
    http: `http${tls ? 's' : ''}://${address}`,
    address,
  }
}
