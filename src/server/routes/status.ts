import { PROTOCOL, SESSION_PATH } from '../../stores/holdfast/wire.ts'
import { Failure } from '../failure.ts'
import { openapiOf } from '../openapi/index.ts'
import { ok } from '../route.ts'
import type { Readiness } from '../readiness.ts'
import type { Reply, Route } from '../route.ts'
import type { LockService } from '../service.ts'

/** How the server is, for machines that look after it. */
export function statusRoutes(service: LockService, readiness: Readiness): readonly Route[] {
  // The largest page that strangers may ask for: made once.
  const body = `${JSON.stringify(openapiOf(service.limits))}\n`
  const description: Reply = { status: 200, body, type: 'application/json' }
  return [
    {
      method: 'GET',
      path: '/v1/health',
      access: 'anybody',
      // It runs, whatever else: who kills a server that only waits for old leases makes it wait again.
      handle: () => ok({ status: service.state.kind, store: service.store.kind }),
    },
    {
      method: 'GET',
      path: '/v1/ready',
      access: 'anybody',
      handle: async () => {
        service.assertOpen()
        const problem = await readiness.problem()
        if (problem !== null) throw problem
        return ok({ status: 'ready', store: service.store.kind })
      },
    },
    {
      method: 'GET',
      path: '/v1/metrics',
      access: 'principals',
      handle: ({ caller }) => {
        if (!caller.principal.mayEverywhere('read'))
          throw new Failure('FORBIDDEN', 'This token may not read everything.')
        const type = 'text/plain; version=0.0.4; charset=utf-8'
        return { status: 200, body: service.registry.metrics.toString(), type }
      },
    },
    {
      method: 'GET',
      path: SESSION_PATH,
      access: 'principals',
      // Whoever asks for the upgrade is heard elsewhere.
      handle: () => {
        throw new Failure('UPGRADE_REQUIRED', `Send "Connection: Upgrade" and "Upgrade: ${PROTOCOL}".`)
      },
    },
    { method: 'GET', path: '/v1/openapi.json', access: 'anybody', handle: () => description },
  ]
}
