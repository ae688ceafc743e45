import type { Hello, Spoken } from '../../stores/holdfast/wire.ts'
import {
  KEEP_PATH,
  LONGEST_QUESTION,
  LONGEST_TIMEOUT,
  OPERATIONS_OVER_HTTP,
  OPERATIONS_PATH,
  OPERATIONS_PER_REQUEST,
  OPERATIONS_TO_KEEP,
} from '../../stores/holdfast/wire.ts'
import { Failure } from '../failure.ts'
import { asFields, noOthers, required, textOf, wholeOf } from '../fields.ts'
import type { Fields } from '../fields.ts'
import { Mailboxes } from '../mailboxes.ts'
import { ok } from '../route.ts'
import type { Call, Reply, Route } from '../route.ts'
import type { LockService } from '../service.ts'
import type { Sessions } from '../sessions.ts'
import type { StreamCounts } from '../stream-counts.ts'
import { Operations, SESSION } from '../stream/operations.ts'

/** What has an answer that may be long comes by itself. */
const LONG = new Set<unknown>(['list', 'inspect'])
const LONGEST_AFTER = Number.MAX_SAFE_INTEGER

export interface OperationsParts {
  readonly service: LockService
  readonly sessions: Sessions
  readonly counts: StreamCounts
  readonly hello: Hello
}

/** A session for programs that have nothing but `fetch`: the operations of a stream in requests, and what it would tell unasked in answers. */
export function operationRoutes(parts: OperationsParts): readonly Route[] {
  const mailboxes = new Mailboxes(parts.sessions, parts.counts)
  parts.service.onStop.add(() => mailboxes.close())
  return [
    {
      method: 'POST',
      path: OPERATIONS_PATH,
      access: 'principals',
      handle: (call) => perform(call, parts, OPERATIONS_OVER_HTTP),
    },
    {
      method: 'POST',
      path: KEEP_PATH,
      access: 'principals',
      handle: (call) => perform(call, parts, OPERATIONS_TO_KEEP),
    },
    {
      method: 'POST',
      path: '/v1/watch',
      access: 'principals',
      handle: (call) => watch(call, parts.service, mailboxes),
    },
  ]
}

async function perform(
  call: Call,
  { service, sessions, hello }: OperationsParts,
  allowed: readonly string[],
): Promise<Reply> {
  const fields = asFields(call.body, 'The body')
  noOthers(fields, ['operations'])
  const { operations: list } = fields
  if (!Array.isArray(list) || list.length === 0 || list.length > OPERATIONS_PER_REQUEST)
    throw new Failure('INVALID_ARGUMENT', `operations must be a list of 1 to ${OPERATIONS_PER_REQUEST}`)
  const asked = list.map((one) => asFields(one, 'an operation'))
  for (const one of asked) assertWellFormed(one, allowed)
  if (asked.length > 1 && asked.some(({ operation }) => LONG.has(operation)))
    throw new Failure('INVALID_ARGUMENT', 'list and inspect come in requests of their own')
  const size = asked.reduce((sum, one) => sum + sizeOf(one), 0)
  const { load } = service
  const share = service.shares.of(call.caller.principal)
  if (!load.hasRoom) await new Promise<void>((resolve) => load.wait(resolve))
  load.begin(size)
  try {
    const operations = new Operations({ service, sessions }, call.caller, () => () => undefined)
    const answer = async ({ operation, payload, timeout }: Fields): Promise<Spoken> => {
      if (operation === 'hello') return hello
      if (allowed === OPERATIONS_TO_KEEP && claimsToo(payload)) return NOT_KEEPING
      return operations.run(operation, payload, timeout)
    }
    // One after the other they are asked, and none is waited for before the next.
    return ok({ answers: await share.take(() => Promise.all(asked.map(answer))) })
  } finally {
    load.end(size)
  }
}

function assertWellFormed(fields: Fields, allowed: readonly string[]): void {
  noOthers(fields, ['operation', 'payload', 'timeout'])
  const { operation, payload } = fields
  if (typeof operation !== 'string' || !allowed.includes(operation)) {
    const known = allowed.join(', ')
    throw new Failure(
      'INVALID_ARGUMENT',
      `operation must be one of ${known}; to be told what happens, POST /v1/watch`,
    )
  }
  if (payload !== undefined && typeof payload !== 'string') {
    if (Array.isArray(payload)) payload.forEach((one) => asFields(one, 'each of a payload'))
    else asFields(payload, 'payload')
  }
  wholeOf(fields, 'timeout', { min: 1, max: LONGEST_TIMEOUT })
}

const claimsToo = (payload: unknown): boolean => Object.hasOwn(Object(payload) as object, 'next')
const NOT_KEEPING: Spoken = {
  kind: 'unknown',
  cause: `To release with \`next\` is to claim: POST ${OPERATIONS_PATH}`,
  code: 'INVALID_ARGUMENT',
  retryable: false,
}

const sizeOf = ({ payload }: Fields): number => (Array.isArray(payload) ? Math.max(1, payload.length) : 1)

async function watch(call: Call, service: LockService, mailboxes: Mailboxes): Promise<Reply> {
  const { caller, onGone } = call
  const fields = asFields(call.body, 'The body')
  noOthers(fields, ['session', 'after', 'wait', 'end'])
  const session = required(textOf(fields, 'session', { most: 64 }), 'session')
  if (!SESSION.test(session))
    throw new Failure('INVALID_ARGUMENT', 'session must be letters, digits, - and _')
  const after = wholeOf(fields, 'after', { min: 0, max: LONGEST_AFTER }) ?? 0
  const wait = wholeOf(fields, 'wait', { min: 0, max: LONGEST_QUESTION }) ?? 0
  const { end = false } = fields
  if (typeof end !== 'boolean') throw new Failure('INVALID_ARGUMENT', 'end must be true or false')
  if (end) {
    mailboxes.end(caller, session)
    return ok({ fresh: false, last: after, events: [] })
  }
  service.assertOpen()
  const question = { session, after, wait: Math.min(wait, service.limits.maxWait) }
  return ok(await mailboxes.ask(caller, question, onGone))
}
