import { EventHub } from '../event-hub.ts'
import { Failure, tooMany } from '../failure.ts'
import { isLonger, onceEach } from '../fields.ts'
import type { Call, Route } from '../route.ts'
import type { LockService } from '../service.ts'
import type { Outbox } from '../outbox.ts'
import type { StreamCounts } from '../stream-counts.ts'

/** A comment line now and then: proxies close what is silent. */
const SIGN_OF_LIFE_MS = 15_000

/** What happens to the locks, as server-sent events, while it happens. */
export function eventRoutes(service: LockService, counts: StreamCounts, outbox: Outbox): readonly Route[] {
  const hub = new EventHub(service.registry)
  return [
    {
      method: 'GET',
      path: '/v1/events',
      access: 'principals',
      handle: (call) => {
        stream(call, service, { counts, outbox, hub })
        return null
      },
    },
  ]
}

function stream(
  { caller, query, request, response, onGone }: Call,
  service: LockService,
  { counts, outbox, hub }: { counts: StreamCounts; outbox: Outbox; hub: EventHub },
): void {
  const { principal } = caller
  if (service.state.kind === 'stopping') service.assertOpen()
  const { prefix = '' } = onceEach(query, ['prefix'])
  if (isLonger(prefix, service.limits.name))
    throw new Failure('INVALID_ARGUMENT', 'prefix must not be longer than a name')
  if (!counts.enter(principal)) throw tooMany('streams', 5)
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    // nginx would gather it, and pass nothing on for hours.
    'x-accel-buffering': 'no',
  })
  const send = (text: string | Buffer): void => {
    if (response.writableLength > service.limits.unread) return void response.destroy()
    response.write(text)
    outbox.wrote(request.socket)
  }
  send(': watching\n\n')
  const stopListening = hub.add(principal, prefix, send)
  const alive = setInterval(() => send(': \n\n'), SIGN_OF_LIFE_MS)
  alive.unref()
  const end = (): void => {
    hub.flush()
    response.end()
  }
  service.onStop.add(end)
  onGone(() => {
    service.onStop.delete(end)
    clearInterval(alive)
    stopListening()
    counts.leave(principal)
  })
}
