import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'

import { afterEach, describe, expect, it } from 'vitest'

import { available, redis } from '../../scripts/services.mjs'
import { endAll, holdfast, lockServer, run, tempFolder } from './cli.ts'

afterEach(endAll)

const folder = tempFolder()

describe('holdfast serve', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'says where it listens, and ends in an orderly way by %s',
    async (signal) => {
      const server = holdfast(['serve', '--listen', '127.0.0.1:0', '--state', 'none'])
      const said = await server.says(/Listening at holdfast:\/\/127\.0\.0\.1:\d+ \(http:/)
      const url = /holdfast:\/\/\S+/.exec(said)?.[0] ?? ''
      expect((await run(['run', 'a', '--', 'true'], { url })).code).toBe(0)
      server.kill(signal)
      expect(await server.end()).toBe(0)
      expect(server.stderr).toContain('leases stay')
    },
  )

  it('ends at once when it is told a second time, and not in the same moment', async () => {
    const behind = await lockServer()
    const server = holdfast(['serve', '--listen', '127.0.0.1:0', '--store', behind.url])
    const port = Number(/127\.0\.0\.1:(\d+)/.exec(await server.says(/Listening at \S+/))?.[1])
    behind.kill('SIGSTOP')
    // A claim that its store does not answer, and half a request, which is known to be there: an orderly end waits a second for each.
    const claim = '{"name":"a","wait":60000}'
    const post = (more: string, length: number): string =>
      `POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nHoldfast-Request: 1\r\nContent-Type: application/json\r\n${more}Content-Length: ${length}\r\n\r\n`
    const sockets: Socket[] = []
    const send = (text: string): Socket => {
      const socket = connect(port, '127.0.0.1', () => void socket.write(text)).on('error', () => undefined)
      sockets.push(socket)
      return socket
    }
    await once(send(post('', claim.length) + claim), 'connect')
    const [told] = (await once(send(post('Expect: 100-continue\r\n', 20)), 'data')) as [Buffer]
    expect(String(told)).toContain('100 Continue')
    server.kill('SIGTERM')
    await server.says('stopping')
    const again = setInterval(() => server.kill('SIGTERM'), 50)
    try {
      expect(await server.end()).toBe(143)
    } finally {
      clearInterval(again)
      for (const socket of sockets) socket.destroy()
      behind.kill('SIGKILL')
    }
  })

  it('opens no door for debuggers by SIGUSR1: whoever is on the machine could come in', async () => {
    const server = holdfast(['serve', '--listen', '127.0.0.1:0', '--state', 'none'])
    const url = /holdfast:\/\/\S+/.exec(await server.says('Listening'))?.[0] ?? ''
    server.kill('SIGUSR1')
    expect((await run(['run', 'a', '--', 'true'], { url })).code).toBe(0)
    server.kill('SIGTERM')
    expect(await server.end()).toBe(0)
    expect(server.stderr).not.toContain('Debugger')
  })

  it('listens at a socket file', async () => {
    const path = join(folder, 'locks.sock')
    const server = holdfast(['serve', '--listen', `unix:${path}`, '--state', 'none'])
    await server.says('Listening')
    const url = `holdfast+unix:${path}`
    expect((await run(['run', 'a', '--', 'true'], { url })).code).toBe(0)
    const force = await run(['release', '--force', 'a', '--reason', 'test'], { url })
    expect(force.stdout).toContain('Nobody holds')
  })

  it.skipIf(!available('redis'))('passes on the locks of another store', async () => {
    await using store = await redis()
    const server = await lockServer('--store', store.url)
    try {
      const holder = holdfast(['run', 'front', '--', 'sh', '-c', 'echo in; sleep 60'], { url: server.url })
      await holder.says('in')
      expect((await run(['run', 'front', '-w0', '--', 'true'], { url: store.url })).code).toBe(75)
    } finally {
      server.kill('SIGKILL')
    }
  })

  it.each([
    [['--listen', '0.0.0.0:0'], 'insecure'],
    [['--tls-cert', 'cert.pem'], 'go together'],
    [['--listen', 'somewhere'], 'listen'],
    // One letter away from an option that means a lot.
    [['--token-file', 'tokens'], '--tokens-file'],
    [['--audit-required'], '--audit FILE'],
    [['--tokens-fle', 'tokens'], 'tokens-fle'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await run(['serve', '--state', 'none', ...args])
    expect(stderr).toContain(message)
    expect(code).toBe(64)
  })

  it('answers 71, and says why, when the port is taken', async () => {
    const server = await lockServer()
    try {
      const { code, stderr } = await run(['serve', '--state', 'none', '--listen', new URL(server.url).host])
      expect(stderr).toMatch(/^holdfast: .*EADDRINUSE.*\n$/)
      expect(code).toBe(71)
    } finally {
      server.kill('SIGKILL')
    }
  })

  it.each(['no token', 'a wrong one', 'no right'])('tells 77 from 69: with %s', async (what) => {
    const token = randomBytes(24).toString('base64url')
    const write = (name: string, text: string): string => {
      const path = join(folder, name)
      writeFileSync(path, text, { mode: 0o600 })
      return path
    }
    const hash = createHash('sha256').update(token).digest('hex')
    const server = await lockServer(
      '--tokens-file',
      write('tokens-77', `me sha256:${hash} acquire,read mine/\n`),
    )
    try {
      const { url } = server
      const auth = {
        'no token': [],
        'a wrong one': ['--token-file', write('wrong-77', `${token}x`)],
        'no right': ['--token-file', write('token-77', token)],
      }[what] as readonly string[]
      for (const args of [
        ['run', 'theirs/a', '--wait', '0', ...auth, '--', 'true'],
        ['acquire', 'theirs/a', '--wait', '1s', ...auth],
        ['inspect', 'theirs/a', ...auth],
      ]) {
        const { code, stderr } = await run(args, { url })
        expect(stderr).toMatch(/token/)
        expect(stderr).not.toContain('did not answer')
        expect([args[0], code]).toEqual([args[0], 77])
      }
    } finally {
      server.kill('SIGKILL')
    }
  })

  it('allows --force only to those who may', async () => {
    const token = randomBytes(24).toString('base64url')
    const write = (name: string, text: string): string => {
      const path = join(folder, name)
      writeFileSync(path, text)
      chmodSync(path, 0o600)
      return path
    }
    const hash = createHash('sha256').update(token).digest('hex')
    const server = await lockServer('--tokens-file', write('tokens', `me sha256:${hash} acquire,read *\n`))
    try {
      const args = ['release', '--force', 'a', '--reason', 'test', '--token-file', write('token', token)]
      expect((await run(args, { url: server.url })).code).toBe(77)
    } finally {
      server.kill('SIGKILL')
    }
  })
})
