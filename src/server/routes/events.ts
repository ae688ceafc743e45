import type { Activity } from '../book.ts'
import { Failure } from '../failure.ts'
import type { Call, Route } from '../route.ts'
import type { LockService } from '../service.ts'
import type { Outbox } from '../outbox.ts'
import type { StreamCounts } from '../stream-counts.ts'

/** A comment line now and then: proxies close what is silent. */
const SIGN_OF_LIFE_MS = 15_000

/** What happens to the locks, as server-sent events, while it happens. */
export function eventRoutes(service: LockService, counts: StreamCounts, outbox: Outbox): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/v1/events',
      access: 'principals',
      handle: (call) => {
        stream(call, service, counts, outbox)
        return null
      },
    },
  ]
}

function stream(
  { caller, query, request, response, onGone }: Call,
  service: LockService,
  counts: StreamCounts,
  outbox: Outbox,
): void {
  const { principal } = caller
  if (service.state.kind === 'stopping') service.assertOpen()
  if (!counts.enter(principal))
    throw new Failure('TOO_MANY', 'There are too many streams already.', { retryAfter: 5 })
  const prefix = query.get('prefix') ?? ''
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  const send = (text: string): void => {
    if (response.writableLength > service.limits.unread) return void response.destroy()
    response.write(text)
    outbox.wrote(request.socket)
  }
  send(': watching\n\n')
  const stopListening = service.book.listen(({ kind, ...facts }: Activity) => {
    if (!facts.name.startsWith(prefix) || !principal.may('read', facts.name)) return
    send(`event: ${kind}\ndata: ${JSON.stringify(facts)}\n\n`)
  })
  const alive = setInterval(() => send(': \n\n'), SIGN_OF_LIFE_MS)
  alive.unref()
  const end = (): void => void response.end()
  service.onStop.add(end)
  onGone(() => {
    service.onStop.delete(end)
    clearInterval(alive)
    stopListening()
    counts.leave(principal)
  })
}
