import { connect, constants } from 'node:http2'

import fastify from 'fastify'
import type { FastifyInstance } from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

import { holdfastPlugin } from 'holdfast/fastify'
import type { HoldfastFastifyOptions } from 'holdfast/fastify'
import { TestLocks } from 'holdfast/testing'

let locks: TestLocks
let app: FastifyInstance
beforeEach(() => {
  locks = new TestLocks()
  app = fastify()
})
afterEach(async () => {
  await app.close()
  await locks.close()
})

async function listen(): Promise<string> {
  return app.listen({ port: 0, host: '127.0.0.1' })
}

const register = async (options: HoldfastFastifyOptions = {}): Promise<void> => {
  await app.register(holdfastPlugin, { holdfast: locks.holdfast, ...options })
}

describe('the plugin', () => {
  it('decorates the application that registers it, and its requests', async () => {
    await register()
    app.get('/', (request) => request.locked('train', (lease) => lease.name))
    expect(app.holdfast).toBe(locks.holdfast)
    expect((await app.inject('/')).body).toBe('train')
    expect(locks.history).toMatchObject([{ name: 'train', state: 'released' }])
  })

  it('takes any lock, and options of the call', async () => {
    await register()
    await locks.others.semaphore('gpu', 4).acquire({ permits: 4 })
    app.get('/', (request) => request.locked(app.holdfast.semaphore('gpu', 4), () => 'got', { wait: 500 }))
    const answer = await locks.until(app.inject('/'))
    expect([answer.statusCode, answer.json()]).toMatchObject([503, { code: 'LOCK_TIMEOUT' }])
  })

  it('answers 503 when the store does not, and 500 when the handler fails', async () => {
    await register()
    app.get('/', (request) => request.locked('train', () => 'sold'))
    app.get('/fails', (request) => request.locked('train', () => Promise.reject(new Error('no ticket'))))
    expect((await app.inject('/fails')).statusCode).toBe(500)
    const mended = locks.down()
    expect((await locks.until(app.inject('/'))).statusCode).toBe(503)
    mended()
    // What was asked for is taken back.
    await locks.advance(30_000)
  })

  it('leaves a status alone that the handler has given to an error', async () => {
    await register()
    await locks.others.mutex('seat').acquire()
    app.get('/', (request) =>
      request.locked('train', () =>
        request
          .locked('seat', () => 'sold', { wait: 0 })
          .catch((error: Error) => Promise.reject(Object.assign(error, { statusCode: 409 }))),
      ),
    )
    expect((await app.inject('/')).statusCode).toBe(409)
  })

  it('opens a URL, and closes what it opened', async () => {
    await app.register(holdfastPlugin, { url: 'memory:', options: { ttl: 5000 } })
    await app.ready()
    const { holdfast } = app
    await app.close()
    expect(holdfast.closed).toBe(true)
  })

  it.each([
    [{}, 'give one of url and holdfast'],
    [{ ulr: 'memory:' }, 'Did you mean "url"?'],
    [{ url: 'memory:', close: { drain: -1 } }, 'drain must be between'],
    [{ url: 'memory:', health: true }, 'health must be a string'],
    [{ url: 'nothing://here' }, 'nothing'],
  ])('refuses %j', async (options, message) => {
    await expect(app.register(holdfastPlugin, options as object).ready()).rejects.toThrow(message)
  })

  it('is registered once, and opens nothing for a second time', async () => {
    await register()
    const second = app.register(holdfastPlugin, { url: 'nothing://here' })
    await expect(second.ready()).rejects.toThrow('registered already')
  })

  it('listens once to each request, however often that locks', async () => {
    await register()
    app.get('/', async (request, reply) => {
      for (let at = 0; at < 20; at++) await request.locked('train', () => at)
      return reply.raw.listenerCount('close')
    })
    app.get('/unlocked', (_request, reply) => reply.send(reply.raw.listenerCount('close')))
    const [locking, other] = await Promise.all([app.inject('/'), app.inject('/unlocked')])
    expect(Number(locking.body) - Number(other.body)).toBe(1)
  })

  it('refuses a signal beside that of the request', async () => {
    await register()
    const options = { signal: AbortSignal.abort() } as object
    app.get('/', (request) => request.locked('train', () => 'sold', options))
    expect((await app.inject('/')).body).toContain('leave it out')
  })
})

describe('a client that goes away', () => {
  it('stands in no line any more', async () => {
    await register()
    app.get('/', (request) => request.locked('train', () => 'sold'))
    const url = await listen()
    await locks.others.mutex('train').acquire()
    const gone = new AbortController()
    const asked = fetch(url, { signal: gone.signal }).catch(() => 'gone')
    const waiters = async (): Promise<number> => (await locks.others.inspect('train')).waiters.length
    await expect.poll(waiters).toBe(1)
    gone.abort()
    expect(await asked).toBe('gone')
    await expect.poll(waiters).toBe(0)
  })

  it('over HTTP/2, before it locks, does not begin to stand in one', async () => {
    const over2 = fastify({ http2: true })
    await over2.register(holdfastPlugin, { holdfast: locks.holdfast })
    await locks.others.mutex('train').acquire()
    let arrive = (): void => {}
    const arrived = new Promise<void>((resolve) => (arrive = resolve))
    const outcome = new Promise<unknown>((resolve) =>
      over2.get('/', async (request, reply) => {
        const left = new Promise((gone) => reply.raw.once('close', gone))
        arrive()
        await left
        const asked = request.locked('train', () => 'sold', { wait: 1000 })
        resolve(await locks.until(asked).catch((error: { code: string }) => error.code))
      }),
    )
    const client = connect(await over2.listen({ port: 0, host: '127.0.0.1' }))
    const request = client.request({ ':path': '/' })
    await arrived
    request.close(constants.NGHTTP2_CANCEL)
    expect(await outcome).toBe('LOCK_ABORTED')
    client.destroy()
    await over2.close()
  })

  it('is not one that has sent all of its body', async () => {
    await register()
    app.post('/', (request) =>
      request.locked('train', async () => {
        await new Promise((resolve) => setTimeout(resolve, 50))
        return String(request.signal.aborted)
      }),
    )
    const url = await listen()
    const theirs = await locks.others.mutex('train').acquire()
    const asked = fetch(url, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })
    await new Promise((resolve) => setTimeout(resolve, 50))
    await theirs.release()
    expect(await (await asked).text()).toBe('false')
  })
})

describe('the end', () => {
  it('drains: who runs is told and answered, who waits turned away', async () => {
    await register()
    app.get('/', (request) =>
      request.locked('train', async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return 'drained'
      }),
    )
    const url = await listen()
    const [one, other] = [fetch(url), fetch(url)]
    await expect.poll(() => locks.history.length).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 50))
    await app.close()
    const answers = await Promise.all([one, other])
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 503])
  })

  it('leaves a Holdfast open that is somebody else’s to close', async () => {
    await register({ close: false })
    await app.close()
    expect(locks.holdfast.closed).toBe(false)
  })
})

describe('the health route', () => {
  it('says whether the store answers', async () => {
    await register({ health: '/health' })
    expect((await app.inject('/health')).json()).toEqual({ status: 'up' })
    locks.down()
    const answer = await app.inject('/health')
    expect([answer.statusCode, answer.json()]).toEqual([503, { status: 'down', code: 'STORE_UNAVAILABLE' }])
  })

  it('is there if it is asked for', async () => {
    await register()
    expect((await app.inject('/health')).statusCode).toBe(404)
  })
})
