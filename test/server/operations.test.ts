import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

import { describe, expect, it } from 'vitest'

import type { StoreListener, Watch } from '../../src/core/contract.ts'
import type { Caller as ServerCaller } from '../../src/server/caller.ts'
import { Failure } from '../../src/server/failure.ts'
import { hashToken } from '../../src/server/index.ts'
import type { RunningServer } from '../../src/server/index.ts'
import { resolveLimits } from '../../src/server/limits.ts'
import { Mailboxes } from '../../src/server/mailboxes.ts'
import type { Delivery } from '../../src/server/mailboxes.ts'
import { ANYBODY } from '../../src/server/rights.ts'
import type { Sessions } from '../../src/server/sessions.ts'
import { StreamCounts } from '../../src/server/stream-counts.ts'
import { call, eventually, portOf, serve, temporaryFolder } from './helpers.ts'
import type { Answer } from './helpers.ts'

const TOKENS = { mallory: 'mallory-0123456789-0123456789', victim: 'victim-0123456789-0123456789' }

function tokensFile(): string {
  const path = join(temporaryFolder(), 'tokens')
  const lines = [
    `mallory ${hashToken(TOKENS.mallory)} acquire,read mine/`,
    `victim ${hashToken(TOKENS.victim)} acquire,read theirs/`,
  ]
  writeFileSync(path, lines.join('\n'), { mode: 0o600 })
  return path
}

/** One client without a connection of its own. */
class Caller {
  readonly session: string
  private readonly server: RunningServer
  private readonly headers: Record<string, string>
  private made = 0

  constructor(server: RunningServer, session: string, token?: string) {
    this.server = server
    this.session = session
    this.headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  id(): string {
    return `${this.session}.${this.made++}`
  }

  send(operations: readonly unknown[]): Promise<Answer> {
    return call(this.server, 'POST /v1/operations', { body: { operations }, headers: this.headers })
  }

  async ask(operation: string, payload: unknown): Promise<Record<string, unknown>> {
    const { status, body, text } = await this.send([{ operation, payload, timeout: 5000 }])
    if (status !== 200) throw new Error(text)
    return (body as unknown as { answers: Record<string, unknown>[] }).answers[0] ?? {}
  }

  claim(name: string, whenBusy: 'queue' | 'try', id: string = this.id()): Promise<Record<string, unknown>> {
    const shape = { weight: 1, capacity: 1, tokens: 1, whenBusy, owner: this.session }
    return this.ask('claim', { name, id, ttl: 10_000, patience: 5000, ...shape })
  }

  watch(question: { after?: number; wait?: number; end?: boolean } = {}): Promise<Answer> {
    return call(this.server, 'POST /v1/watch', {
      body: { session: this.session, ...question },
      headers: this.headers,
    })
  }

  async hear(after: number, wait = 5000): Promise<{ fresh: boolean; last: number; events: unknown[] }> {
    const { status, body, text } = await this.watch({ after, wait })
    if (status !== 200) throw new Error(text)
    return body as unknown as { fresh: boolean; last: number; events: unknown[] }
  }
}

describe('the operations of a session over HTTP', () => {
  it('tell a waiter of its turn, once, and again until it says that it has heard', async () => {
    const server = await serve()
    const [holder, waiter] = [new Caller(server, 'holder'), new Caller(server, 'waiter')]
    expect(await waiter.hear(0)).toEqual({ fresh: true, last: 0, events: [] })
    const id = holder.id()
    expect(await holder.claim('a', 'queue', id)).toMatchObject({ kind: 'held', count: 1 })
    expect(await waiter.claim('a', 'queue')).toMatchObject({ kind: 'queued' })
    const waits = waiter.hear(0)
    expect(await holder.ask('release', { name: 'a', id })).toMatchObject({ released: { kind: 'released' } })
    const granted = { kind: 'granted', name: 'a', id: 'waiter.0' }
    expect(await waits).toMatchObject({ fresh: false, last: 1, events: [granted] })
    // As if that answer had been lost.
    expect(await waiter.hear(0)).toMatchObject({ last: 1, events: [granted] })
    expect(await waiter.hear(1, 1)).toEqual({ fresh: false, last: 1, events: [] })
  })

  it('answer a question that waits when a later one comes, and when nobody listens any more', async () => {
    const server = await serve()
    const client = new Caller(server, 'client')
    await client.hear(0)
    const earlier = client.hear(0, 60_000)
    const later = client.hear(0, 60_000)
    expect(await earlier).toMatchObject({ events: [] })
    expect((await client.watch({ end: true })).status).toBe(200)
    expect(await later).toMatchObject({ events: [] })
    expect(await client.hear(0)).toMatchObject({ fresh: true })
  })

  it('say that something may have been missed to whoever is behind by too much, or ahead', async () => {
    const server = await serve()
    const [holder, waiter] = [new Caller(server, 'holder'), new Caller(server, 'waiter')]
    await holder.hear(0)
    const names = Array.from({ length: 205 }, (_, at) => `n${at}`)
    for (const name of names) await holder.claim(name, 'queue')
    // Each tells the holder that somebody waits.
    for (const name of names) await waiter.claim(name, 'queue')
    const { events, last } = await holder.hear(0)
    expect(events[0]).toEqual({ kind: 'gap' })
    expect(events.length).toBeLessThan(10)
    expect(await holder.hear(last + 7)).toMatchObject({ events: [{ kind: 'gap' }] })
  })

  it('wait for no longer than the server lets a request wait, whatever was asked for', async () => {
    const server = await serve({ limits: { maxWait: 5 } })
    const client = new Caller(server, 'client')
    await client.hear(0)
    expect(await client.hear(0, 20_000)).toEqual({ fresh: false, last: 0, events: [] })
  })

  it.each(['s.1 9 1 1 999999999999 5000 x', 's.1 2', 's 1.2', 's.1.2', 's.1\u00a02', 's.{a}', 'ä.1'])(
    'claim nothing by an id that a store could take for more than an id: %s',
    async (id) => {
      const server = await serve()
      const client = new Caller(server, 's')
      expect(await client.claim('a', 'try', id)).toMatchObject({ code: 'INVALID_ARGUMENT', retryable: false })
      expect(await client.claim('a', 'try', 's.0')).toMatchObject({ kind: 'held' })
      const next = {
        weight: 1,
        capacity: 1,
        ttl: 1000,
        patience: 1000,
        tokens: 1,
        whenBusy: 'try',
        name: 'a',
        id,
      }
      expect(await client.ask('release', { name: 'a', id: 's.0', next })).toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
      // What it holds under another build's rules may be given back.
      expect(await client.ask('withdraw', { name: 'a', id })).toEqual({ kind: 'not-held' })
    },
  )

  it('end for a session whose token may do other things from now on', async () => {
    const path = tokensFile()
    const server = await serve({ tokensFile: path })
    const client = new Caller(server, 'client', TOKENS.mallory)
    expect(await client.hear(0)).toMatchObject({ fresh: true })
    writeFileSync(path, `mallory ${hashToken(TOKENS.mallory)} acquire mine/`)
    server.reload()
    expect(await client.hear(0)).toMatchObject({ fresh: true })
  })

  it('are refused to a token that was taken away while its request was sent', async () => {
    const path = tokensFile()
    const server = await serve({ tokensFile: path })
    const socket = connect(portOf(server), '127.0.0.1')
    const body = JSON.stringify({ session: 'slow', wait: 60_000 })
    const lines = [
      'POST /v1/watch HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${TOKENS.mallory}`,
      'Content-Type: application/json',
      'Holdfast-Request: 1',
      'Expect: 100-continue',
      `Content-Length: ${body.length}`,
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    let heard = ''
    socket.on('data', (bytes: Buffer) => (heard += String(bytes)))
    socket.on('error', () => undefined)
    await once(socket, 'data')
    expect(heard).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    writeFileSync(path, `victim ${hashToken(TOKENS.victim)} acquire theirs/`)
    server.reload()
    socket.write(body)
    await once(socket, 'close')
    expect(heard).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  })

  it('are kept by nobody for a session that is refused', async () => {
    const sessions = {
      assertOwn: () => undefined,
      watch: () => {
        throw new Failure('TOO_MANY', 'There are too many.')
      },
    } as unknown as Sessions
    const mailboxes = new Mailboxes(sessions, new StreamCounts(resolveLimits()))
    const caller = { principal: ANYBODY, remote: 'here', request: '1' }
    const question = { session: 's', after: 0, wait: 0 }
    await expect(mailboxes.ask(caller, question, () => undefined)).rejects.toThrow('too many')
    expect(mailboxes.size).toBe(0)
  })

  it('lose nothing of one principal for what another one has not fetched', async () => {
    const listeners: StoreListener[] = []
    const sessions = {
      assertOwn: () => undefined,
      watch: (_session: string, _caller: unknown, listener: StoreListener) => {
        listeners.push(listener)
        return { kind: 'watching', stop: () => undefined }
      },
    } as unknown as Sessions
    const mailboxes = new Mailboxes(sessions, new StreamCounts(resolveLimits()))
    const ask = (name: string, session: string): Promise<Delivery> => {
      const caller = { principal: { name, whenChanged: new Set() }, remote: 'here', request: '1' }
      return mailboxes.ask(caller as unknown as ServerCaller, { session, after: 0, wait: 0 }, () => undefined)
    }
    const contended = { kind: 'contended', name: 'a', id: 's.1' } as const
    for (let at = 0; at < 500; at++) {
      await ask('mallory', `m${at}`)
      for (let event = 0; event < 200; event++) listeners.at(-1)?.(contended)
    }
    await ask('victim', 'v')
    listeners.at(-1)?.(contended)
    listeners.at(-1)?.(contended)
    expect(await ask('victim', 'v')).toMatchObject({ events: [contended, contended] })
    mailboxes.close()
  })

  it('count nothing for a session that ended before the store had said that it listens', async () => {
    const listeners: StoreListener[] = []
    const answers: ((watch: Watch) => void)[] = []
    const sessions = {
      assertOwn: () => undefined,
      watch: async (_session: string, _caller: unknown, listener: StoreListener) => {
        listeners.push(listener)
        return new Promise<Watch>((resolve) => answers.push(resolve))
      },
    } as unknown as Sessions
    const mailboxes = new Mailboxes(sessions, new StreamCounts(resolveLimits()))
    const caller = { principal: ANYBODY, remote: 'here', request: '1' }
    const ask = (session: string): Promise<Delivery> =>
      mailboxes.ask(caller, { session, after: 0, wait: 0 }, () => undefined)
    const contended = { kind: 'contended', name: 'a', id: 's.1' } as const
    for (let at = 0; at < 150; at++) {
      const asked = ask(`s${at}`)
      mailboxes.end(caller, `s${at}`)
      for (let event = 0; event < 200; event++) listeners.at(-1)?.(contended)
      answers.at(-1)?.({ kind: 'watching', stop: () => undefined })
      await asked
    }
    const opened = ask('last')
    answers.at(-1)?.({ kind: 'watching', stop: () => undefined })
    await opened
    listeners.at(-1)?.(contended)
    listeners.at(-1)?.(contended)
    expect(await ask('last')).toMatchObject({ events: [contended, contended] })
    mailboxes.close()
  })

  it('end with the server', async () => {
    const server = await serve()
    const client = new Caller(server, 'client')
    await client.hear(0)
    const waits = client.hear(0, 60_000)
    // An answer on another connection: by then that question is there.
    await client.ask('ping', {})
    await client.ask('ping', {})
    await server.close({ grace: 2000 })
    expect(await waits).toMatchObject({ events: [] })
  })

  it('are those of their principal: names, sessions and what they are told', async () => {
    const server = await serve({ tokensFile: tokensFile() })
    const victim = new Caller(server, 'victims', TOKENS.victim)
    const mallory = new Caller(server, 'victims', TOKENS.mallory)
    await victim.hear(0)
    await victim.claim('theirs/a', 'queue')
    expect((await mallory.watch()).status).toBe(403)
    expect((await mallory.watch({ end: true })).status).toBe(403)
    expect(await mallory.claim('mine/a', 'queue', 'victims.9')).toMatchObject({ code: 'FORBIDDEN' })
    expect(await mallory.claim('theirs/a', 'queue', 'other.0')).toMatchObject({ code: 'FORBIDDEN' })
    const strangers = new Caller(server, 'victims', 'nobody-0123456789-0123456789')
    expect((await strangers.send([{ operation: 'ping' }])).status).toBe(401)
    expect((await strangers.watch()).status).toBe(401)
    // Nobody took it from its owner.
    expect(await victim.hear(0, 1)).toMatchObject({ fresh: false, events: [] })
  })

  it('have no claim among those that only keep', async () => {
    const server = await serve()
    const keep = (operation: string, payload: unknown): Promise<Answer> =>
      call(server, 'POST /v1/keep', { body: { operations: [{ operation, payload }] } })
    const claim = { name: 'a', id: 's.0', weight: 1, capacity: 1, ttl: 5000, patience: 5000, tokens: 1 }
    const wished = { ...claim, whenBusy: 'try', owner: 'me' }
    for (const operation of ['claim', 'hello', 'inspect', 'list', 'downgrade', 'ping'])
      expect((await keep(operation, wished)).status).toBe(400)
    const { body } = await keep('release', { name: 'a', id: 's.1', next: wished })
    expect(body).toMatchObject({ answers: [{ kind: 'unknown', code: 'INVALID_ARGUMENT' }] })
    expect(await new Caller(server, 't').claim('a', 'try')).toMatchObject({ kind: 'held' })
  })

  it('listen to one door for one session: a stream or these', async () => {
    const server = await serve()
    const secret = 'a'.repeat(22)
    const waits = new AbortController()
    const body = { name: 'x', ttl: 10_000 }
    await call(server, 'POST /v1/acquire', { body })
    const poll = call(server, 'POST /v1/acquire', {
      body: { ...body, wait: 60_000, lease: `${secret}.${'b'.repeat(22)}` },
      signal: waits.signal,
    }).catch(() => null)
    const client = new Caller(server, secret)
    await eventually('the request waits', async () => (await client.watch()).status === 409)
    expect((await client.watch()).body.error.code).toBe('ID_IN_USE')
    waits.abort()
    await poll
  })

  it.each([
    ['no operation', []],
    ['too many', Array.from({ length: 65 }, () => ({ operation: 'ping' }))],
    ['one that nobody knows', [{ operation: 'reboot' }]],
    ['one that needs a connection', [{ operation: 'watch', payload: 's' }]],
    ['a list among others', [{ operation: 'ping' }, { operation: 'list', payload: {} }]],
    ['a payload that is a number', [{ operation: 'claim', payload: 7 }]],
    ['a time that is none', [{ operation: 'ping', timeout: 0 }]],
    ['more than an operation has', [{ operation: 'ping', token: 'x' }]],
  ])('are refused: %s', async (_what, operations) => {
    const server = await serve()
    const { status, body } = await new Caller(server, 's').send(operations)
    expect([status, body.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
  })
})
