import { platform } from '#platform'

import type { Unknown } from '../../core/contract.ts'
import { unknown } from '../../core/unknown.ts'
import { Listening } from './watch.ts'
import { Live } from './live.ts'
import { post } from './post.ts'
import type { Endpoint } from './post.ts'
import { helloOf } from '../holdfast/replies.ts'
import type { Connection, ConnectionOwner } from '../holdfast/server-store.ts'
import {
  KEEP_PATH,
  LONGEST_TIMEOUT,
  OPERATIONS_PATH,
  OPERATIONS_PER_REQUEST,
  OPERATIONS_TO_KEEP,
} from '../holdfast/wire.ts'
import type { Hello, Operation } from '../holdfast/wire.ts'

const { queueMicrotask, performance } = globalThis

/** What the server takes as a body, with room for what is around the operations. */
const BODY_CHARACTERS = 4000
/** Of renewals, the longest body: sixteen kilobytes, with room for what is around them. */
const RENEWAL_BYTES = 15 * 1024
/**
 * What takes longer than this, or than half of its time, may wait for the connection that a question of ours has: browsers have six for one
 * server, in all their tabs together.
 */
const CROWDED_MS = 1000
/** Their answers may be long. */
const ALONE = new Set<Operation>(['list', 'inspect'])

interface Asked {
  readonly operation: Operation
  readonly payload: unknown
  readonly timeout: number
  readonly since: number
  readonly size: number
  readonly settle: (answer: unknown) => void
}

/** The way to a lock server for programs that have nothing but `fetch`: what is asked together goes in one request. */
export class HttpConnection implements Connection {
  hello: Hello | null = null
  readonly connected = true
  // To listen, a request has to wait at the server.
  readonly listeningIsFree = false
  readonly renewalBytes: number = RENEWAL_BYTES
  private readonly endpoint: Endpoint
  private readonly listening: Listening
  private readonly live: Live
  private readonly under = new Set<AbortController>()
  private unsent: Asked[] = []
  private closed = false

  constructor(endpoint: Endpoint, owner: ConnectionOwner) {
    this.endpoint = endpoint
    this.live = new Live()
    this.listening = new Listening(endpoint, this.live, owner)
  }

  async ask(operation: Operation, payload: unknown, timeout: number): Promise<unknown> {
    if (this.closed) return CLOSED
    const since = performance.now()
    if (operation === 'watch') return this.listening.begin(String(payload), timeout)
    if (operation === 'unwatch') return this.listening.end(String(payload))
    // Whoever stands in line must be heard to listen, or is passed over.
    if (mayQueue(operation, payload)) await this.listening.ready(timeout)
    const left = timeout - (performance.now() - since)
    if (left <= 0) return LATE
    const noted = this.live.begin(operation, payload)
    const answer = await new Promise<unknown>((settle) => {
      const size = JSON.stringify(payload).length
      this.unsent.push({ operation, payload, timeout: left, since, size, settle })
      if (this.unsent.length === 1) queueMicrotask(() => this.flush())
    })
    noted(answer)
    this.listening.wake()
    return answer
  }

  keep(kept: boolean): void {
    this.live.waits = kept
    if (kept) this.listening.wake()
  }

  close(): void {
    this.closed = true
    this.listening.close()
    for (const control of this.under) control.abort()
    for (const { settle } of this.unsent.splice(0)) settle(CLOSED)
  }

  private flush(): void {
    const unsent = this.unsent
    this.unsent = []
    const toKeep = unsent.filter((one) => onlyKeeps(one))
    const others = unsent.filter((one) => !onlyKeeps(one))
    for (const together of requestsOf(toKeep)) this.send(KEEP_PATH, together).catch(() => undefined)
    for (const together of requestsOf(others)) this.send(OPERATIONS_PATH, together).catch(() => undefined)
  }

  /** Never rejects. */
  private async send(
    path: typeof KEEP_PATH | typeof OPERATIONS_PATH,
    together: readonly Asked[],
  ): Promise<void> {
    const timeout = Math.min(...together.map((one) => one.timeout))
    const alone = together.some(({ operation }) => ALONE.has(operation))
    const greeting = this.hello === null && !alone && path === OPERATIONS_PATH ? [{ operation: 'hello' }] : []
    const operations = [
      ...greeting,
      ...together.map(({ operation, payload }) => ({
        operation,
        payload: payload ?? undefined,
        timeout: Math.min(Math.ceil(timeout), LONGEST_TIMEOUT),
      })),
    ]
    const control = new AbortController()
    this.under.add(control)
    const timer = platform.setTimeout(() => control.abort(), timeout)
    const crowded = platform.setTimeout(() => this.listening.makeRoom(), Math.min(CROWDED_MS, timeout / 2))
    const said = await post(this.endpoint, path, { operations }, control.signal)
    for (const one of [timer, crowded]) platform.clearTimeout(one)
    this.under.delete(control)
    const answers = this.closed ? CLOSED : answersOf(said, operations.length)
    if ('kind' in answers) return together.forEach(({ settle }) => settle(answers))
    if (greeting.length > 0) this.hello = helloOf(answers[0])
    together.forEach(({ settle }, index) => settle(answers[index + greeting.length]))
  }
}

/** By size, and by how long an answer may take: who has little time does not cut short what others have. */
function requestsOf(unsent: readonly Asked[]): readonly (readonly Asked[])[] {
  const requests: Asked[][] = []
  const open = new Map<number, { readonly request: Asked[]; size: number }>()
  for (const one of unsent) {
    if (ALONE.has(one.operation)) {
      requests.push([one])
      continue
    }
    const pace = Math.clz32(one.timeout)
    const last = open.get(pace)
    // One less, for the greeting.
    if (
      last !== undefined &&
      last.request.length < OPERATIONS_PER_REQUEST - 1 &&
      last.size + one.size <= BODY_CHARACTERS
    ) {
      last.request.push(one)
      last.size += one.size
      continue
    }
    const request = [one]
    requests.push(request)
    open.set(pace, { request, size: one.size })
  }
  return requests
}

function mayQueue(operation: Operation, payload: unknown): boolean {
  const { whenBusy, next } = (payload ?? {}) as { readonly whenBusy?: unknown; readonly next?: unknown }
  return (operation === 'claim' && whenBusy === 'queue') || (operation === 'release' && next !== undefined)
}

function onlyKeeps({ operation, payload }: Asked): boolean {
  return OPERATIONS_TO_KEEP.includes(operation) && !Object.hasOwn(payload as object, 'next')
}

function answersOf(said: unknown, count: number): readonly unknown[] | Unknown {
  const { kind, answers } = said as { readonly kind?: unknown; readonly answers?: unknown }
  if (kind === 'unknown') return said as Unknown
  return Array.isArray(answers) && answers.length === count ? (answers as unknown[]) : NONSENSE
}

const CLOSED = unknown(new Error('The store was closed'))
const LATE = unknown(new Error('The lock server did not answer in time'))
const NONSENSE = unknown(new Error('The lock server gave an answer that is none'))
