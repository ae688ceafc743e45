import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'

import { afterEach, describe, expect, it } from 'vitest'

import { Holdfast } from 'holdfast'
import { httpStore, openHttpStore } from 'holdfast/http'
import type { Fetch } from 'holdfast/http'
import { startServer } from '../../../src/server/index.ts'
import type { RunningServer } from '../../../src/server/index.ts'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step()
})

async function lockServer(): Promise<RunningServer & { readonly base: string }> {
  const server = await startServer({ listen: '127.0.0.1:0' })
  undo.push(() => server.close({ grace: 50 }))
  return Object.assign(server, { base: `http://${server.address}` })
}

/** Somebody else at that address. */
async function impostor(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  undo.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** As in a browser, which has six for one server, in all its tabs together. */
function fewConnections(count: number): Fetch {
  let free = count
  const line: (() => void)[] = []
  return async (url, request) => {
    if (free > 0) free--
    else await new Promise<void>((resolve) => line.push(resolve))
    try {
      const response = await fetch(url, request)
      return new Response(await response.text(), { status: response.status })
    } finally {
      const next = line.shift()
      if (next === undefined) free++
      else next()
    }
  }
}

const CLAIM = {
  name: 'a',
  id: 's.0',
  weight: 1,
  capacity: 1,
  ttl: 5000,
  patience: 5000,
  tokens: 1,
  whenBusy: 'try',
  owner: 'me',
} as const

describe('a lock server by fetch alone', () => {
  it.each([['redis://host'], ['http://user:secret@host'], ['https://host/?token=secret'], ['host:7420']])(
    'refuses the address %s, and does not repeat what may be a secret',
    (url) => {
      expect(() => httpStore(url)).toThrow(/^url must/)
      expect(() => httpStore(url)).not.toThrow(/secret/)
    },
  )

  it('takes a function that sends requests, and a path before the routes', async () => {
    const { base } = await lockServer()
    const asked: string[] = []
    const store = httpStore('https://locks.example/team/', {
      fetch: (url, request) => {
        asked.push(url)
        return fetch(url.replace('https://locks.example/team', base), request)
      },
    })
    await using holdfast = new Holdfast(store, { closeStore: true })
    expect(await holdfast.mutex('a').run(() => 7)).toBe(7)
    expect(asked).toEqual(['operations', 'keep'].map((path) => `https://locks.example/team/v1/${path}`))
  })

  it('takes no other answer for one: what it cannot read is unknown', async () => {
    const answers: string[] = [
      '',
      'null',
      '[]',
      '7',
      '{}',
      '{"answers":[]}',
      '{"answers":[{},{}]}',
      '{"answers":[{"kind":"hello"},{"kind":"held"}]}',
      '{"answers":[null,{"kind":"held","token":7,"count":1,"contended":false}]}',
      '{"answers":[null,{"kind":"held","token":"7","count":0,"contended":false}]}',
      '{"answers":[null,{"kind":"renewed"}]}',
      '{"answers":[null,[{"kind":"held","token":"7","count":1,"contended":false}]]}',
      `{"answers":${'['.repeat(10_000)}`,
    ]
    let at = 0
    const base = await impostor((_request, response) => response.end(answers[at++]))
    const store = httpStore(base)
    const kinds: string[] = []
    for (const _ of answers) kinds.push((await store.claim(CLAIM, 2000)).kind)
    expect(kinds).toEqual(answers.map(() => 'unknown'))
    await store.close()
  })

  it.each(['null', '7', '{}', '[]', '[null]', '{"kind":"unknown"}', '{"released":null}'])(
    'takes %s for no answer to anything',
    async (answer) => {
      const base = await impostor((request, response) => {
        request.on('data', (body: Buffer) => {
          const { operations = [] } = JSON.parse(String(body)) as { readonly operations?: readonly unknown[] }
          response.end(`{"answers":[${operations.map(() => answer).join(',')}]}`)
        })
      })
      const store = httpStore(base)
      const answers = [
        await store.claim(CLAIM, 2000),
        ...(await store.renew([CLAIM], 2000)),
        (await store.release(CLAIM, undefined, 2000)).released,
        (await store.release(CLAIM, { ...CLAIM, id: 's.1' }, 2000)).released,
        await store.withdraw(CLAIM, 2000),
        await store.downgrade?.(CLAIM, 2000),
        await store.inspect('a', 2000),
        await store.list({}, 2000),
        await store.watch('s', () => undefined, 2000),
      ]
      expect(answers.map((one) => (one as { readonly kind?: unknown }).kind)).toEqual(
        answers.map(() => 'unknown'),
      )
      await store.close()
    },
  )

  it.each(['a', 'ä', '€', '"', '🔑'])(
    'renews a hundred leases with names of any length of %s',
    async (sign) => {
      const { base } = await lockServer()
      const store = httpStore(base)
      for (const bytes of [8, 100, 250, 500]) {
        const name = sign.repeat(Math.floor(bytes / Buffer.byteLength(sign)))
        const claims = Array.from({ length: 100 }, (_, at) => ({
          ...CLAIM,
          name: `${name}${at}`,
          id: `s.${at}`,
        }))
        await Promise.all(claims.map(async (claim) => store.claim(claim, 5000)))
        const renewed = await store.renew(claims, 5000)
        expect(renewed.map(({ kind }) => kind)).toEqual(claims.map(() => 'held'))
        await Promise.all(claims.map(async (claim) => store.release(claim, undefined, 5000)))
      }
      await store.close()
    },
  )

  it.each([
    ['a request', (): Promise<Response> => new Promise(() => undefined)],
    ['the body of an answer', (): Promise<Response> => Promise.resolve(new Response(new ReadableStream()))],
  ])('does not wait for %s that `fetch` goes on with, whatever it was told', async (_what, never) => {
    const store = httpStore('https://locks.example', { fetch: never })
    expect(await store.claim(CLAIM, 50)).toMatchObject({ kind: 'unknown' })
    expect(await store.watch('s', () => undefined, 50)).toMatchObject({ kind: 'unknown' })
    await store.close()
  })

  it('keeps and gives back what it has while others of its principal ask for more than they may', async () => {
    const server = await startServer({ listen: '127.0.0.1:0', limits: { requestsPerSecond: 5 } })
    undo.push(() => server.close({ grace: 50 }))
    const store = httpStore(`http://${server.address}`)
    expect(await store.claim(CLAIM, 5000)).toMatchObject({ kind: 'held' })
    let more: { readonly kind: string; readonly cause?: unknown }
    do more = await store.claim({ ...CLAIM, id: 's.1' }, 5000)
    while (more.kind !== 'unknown')
    expect(more.cause).toMatchObject({ code: 'RATE_LIMITED' })
    expect(await store.renew([CLAIM], 5000)).toMatchObject([{ kind: 'held' }])
    expect(await store.release(CLAIM, undefined, 5000)).toEqual({ released: { kind: 'released' } })
    expect(await store.withdraw({ name: 'a', id: 's.1' }, 5000)).toEqual({ kind: 'not-held' })
    await store.close()
  })

  it('gives way with questions that wait where connections are few, as in browsers', async () => {
    const { base } = await lockServer()
    const fetching = fewConnections(2)
    const clients = Array.from({ length: 4 }, () => {
      return new Holdfast(httpStore(base, { fetch: fetching }), { closeStore: true, ttl: 6000 })
    })
    undo.push(() => Promise.all(clients.map((client) => client.close())))
    const [holder, ...others] = clients
    if (holder === undefined) throw new Error('there is one')
    const lease = await holder.mutex('a').acquire()
    const tokens = others.map(async (other) => {
      const next = await other.mutex('a').acquire({ wait: 60_000 })
      await next.release()
      return next.token
    })
    // Longer than a lease that is not renewed, and shorter than a question waits.
    await new Promise((resolve) => setTimeout(resolve, 9000))
    const { held } = lease
    await lease.release()
    expect(new Set(await Promise.all(tokens)).size).toBe(3)
    expect(held).toBe(true)
  })

  it.each(['held', 'queued'])(
    'does not listen for ever for a claim that was given back before an answer that it is %s',
    async (kind) => {
      const said = {
        held: { kind, token: '7', count: 1, contended: false },
        queued: { kind, retryAfter: 1000 },
      }
      const slow: (() => void)[] = []
      const questions: (() => void)[] = []
      const reply = (body: unknown): Response => new Response(JSON.stringify(body))
      const store = httpStore('https://locks.example', {
        fetch: async (url, { body }) => {
          if (url.endsWith('/v1/watch')) {
            const fresh = !body.includes('"wait":2')
            if (!fresh) await new Promise<void>((resolve) => questions.push(resolve))
            return reply({ fresh, last: 0, events: [] })
          }
          const { operations } = JSON.parse(body) as { readonly operations: { readonly operation: string }[] }
          if (body.includes('"renew"')) await new Promise<void>((resolve) => slow.push(resolve))
          const one = said[kind as keyof typeof said]
          const answers = { claim: one, renew: [one], release: { released: { kind: 'released' } } }
          return reply({
            answers: operations.map(({ operation }) => answers[operation as keyof typeof answers] ?? null),
          })
        },
      })
      await store.watch('s', () => undefined, 2000)
      expect(await store.claim({ ...CLAIM, whenBusy: 'queue' }, 2000)).toMatchObject({ kind })
      const renewed = store.renew([CLAIM], 20_000)
      while (slow.length === 0) await new Promise((resolve) => setImmediate(resolve))
      expect(await store.release(CLAIM, undefined, 2000)).toEqual({ released: { kind: 'released' } })
      slow[0]?.()
      expect(await renewed).toMatchObject([{ kind }])
      // What it still asks is its last question.
      for (let turn = 0; turn < 50; turn++) {
        for (const answer of questions.splice(0)) answer()
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      expect(questions).toEqual([])
      await store.close()
    },
  )

  it('asks a server that does not wait, and has nothing to tell, more and more seldom', async () => {
    let questions = 0
    const base = await impostor((request, response) => {
      if (request.url === '/v1/watch') questions++
      const watch = '{"fresh":false,"last":0,"events":[]}'
      const held = '{"answers":[null,{"kind":"held","token":"7","count":1,"contended":false}]}'
      response.end(request.url === '/v1/watch' ? watch : held)
    })
    const store = httpStore(base)
    await store.watch('s', () => undefined, 2000)
    await store.claim(CLAIM, 2000)
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(questions).toBeGreaterThan(1)
    expect(questions).toBeLessThan(10)
    await store.close()
  })

  it('listens at once to a server that is back, however long it was away', async () => {
    const asked: number[] = []
    const reply = (body: unknown, status = 200): Response => new Response(JSON.stringify(body), { status })
    const store = httpStore('https://locks.example', {
      fetch: async (url, { body }) => {
        if (!url.endsWith('/v1/watch')) {
          const held = { kind: 'held', token: '7', count: 1, contended: false }
          return reply({ answers: body.includes('hello') ? [null, held] : [held] })
        }
        if (body.includes('"wait":0')) return reply({ fresh: true, last: 0, events: [] })
        asked.push(performance.now())
        // By now the pauses between questions have become long.
        if (asked.length < 6) return reply({}, 503)
        if (asked.length === 6) return reply({ fresh: true, last: 0, events: [] })
        return new Promise(() => undefined)
      },
    })
    await store.watch('s', () => undefined, 2000)
    await store.claim(CLAIM, 2000)
    await expect.poll(() => asked.length, { timeout: 10_000 }).toBe(7)
    const [back = 0, next = Infinity] = asked.slice(5)
    expect(next - back).toBeLessThan(500)
    await store.close()
  })

  it('is woken by a server whose requests may not wait for long', async () => {
    const { base, refused } = await (async () => {
      const server = await startServer({ listen: '127.0.0.1:0', limits: { maxWait: 1000 } })
      undo.push(() => server.close({ grace: 50 }))
      return { base: `http://${server.address}`, refused: [] as string[] }
    })()
    const noting: Fetch = async (url, request) => {
      const response = await fetch(url, request)
      if (!response.ok) refused.push(`${url} ${response.status}`)
      return response
    }
    await using holder = new Holdfast(httpStore(base), { closeStore: true })
    await using waiter = new Holdfast(httpStore(base, { fetch: noting }), { closeStore: true })
    const lease = await holder.mutex('a').acquire()
    const next = waiter.mutex('a').acquire({ wait: 20_000 })
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await lease.release()
    await (await next).release()
    expect(refused).toEqual([])
  })

  it('sends its token nowhere else', async () => {
    const seen: (string | undefined)[] = []
    const elsewhere = await impostor((request, response) => {
      seen.push(request.headers.authorization)
      response.end('{}')
    })
    const base = await impostor((_request, response) =>
      response.writeHead(307, { location: elsewhere }).end(),
    )
    const store = httpStore(base, { token: 'a-token-0123456789-0123456789' })
    expect(await store.claim(CLAIM, 2000)).toMatchObject({ kind: 'unknown', retryable: false })
    expect(seen).toEqual([])
    await store.close()
  })

  it('says what stands at an address without a lock server, and that nobody does', async () => {
    const base = await impostor((_request, response) => response.writeHead(404).end('not found'))
    await expect(openHttpStore(base)).rejects.toThrow(/no lock server at this address, or an old one/)
    await expect(openHttpStore('http://127.0.0.1:9')).rejects.toThrow(/did not answer. Start one with/)
  })

  it('does not wait for an answer that does not come for longer than it may', async () => {
    const base = await impostor(() => undefined)
    const store = httpStore(base)
    const answer = await store.claim(CLAIM, 50)
    expect(answer).toMatchObject({ kind: 'unknown' })
    await store.close()
  })

  it('keeps no process that is done, closed or not', async () => {
    const { base } = await lockServer()
    const program = `
      import { open } from 'holdfast'
      const holdfast = await open(${JSON.stringify(base)})
      await holdfast.mutex('a').run(() => {})
      console.log('done')`
    const run = promisify(execFile)
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], {
      cwd: new URL('../../..', import.meta.url),
      timeout: 15_000,
    })
    expect(stdout.trim()).toBe('done')
  })

  it('wakes a waiter, and a reader in line behind a writer, without asking again and again', async () => {
    const { base } = await lockServer()
    let requests = 0
    const counting = (url: string, request: Parameters<typeof fetch>[1]): Promise<Response> => {
      requests++
      return fetch(url, request)
    }
    await using holder = new Holdfast(httpStore(base), { closeStore: true })
    await using waiter = new Holdfast(httpStore(base, { fetch: counting }), { closeStore: true })
    const lease = await holder.readWriteLock('b').write.acquire()
    const reader = waiter.readWriteLock('b').read.acquire({ wait: 20_000 })
    await new Promise((resolve) => setTimeout(resolve, 1500))
    // A try, the wish to listen, the place in line, the question that waits.
    expect(requests).toBeLessThanOrEqual(6)
    await lease.release()
    const read = await reader
    expect(read.held).toBe(true)
    await read.release()
  })
})
