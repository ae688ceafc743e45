import { connect } from 'node:net'
import { getHeapStatistics } from 'node:v8'

import { expect, it } from 'vitest'

import { resolveLimits } from '../../../src/server/limits.ts'
import { afterwards, eventually, look, portOf, raw, serve, take } from '../helpers.ts'

const H2C =
  'connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n'
const offer = `GET /v1/health HTTP/1.1\r\nhost: localhost\r\n${H2C}\r\n`

it.each([2, 200])(
  'takes no offer of another protocol while an answer is under way: %d at once',
  async (count) => {
    const server = await serve({ state: null })
    const got = await raw(server, offer.repeat(count))
    expect([...got.matchAll(/HTTP\/1\.1 /g)].length).toBeLessThan(2)
  },
)

it.each([
  [50, '400'],
  [64, '413'],
  [65, '413'],
  [97, '413'],
  [150, '413'],
])('reads no body as a request, behind an offer with %d headers more', async (count, status) => {
  const server = await serve({ state: null })
  const body = 'GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n'
  const more = Array.from({ length: count }, (_, index) => `x-${index}: 1\r\n`).join('')
  const own = `content-type: application/json\r\nholdfast-request: 1\r\nconnection: close\r\ncontent-length: ${body.length}\r\n`
  const got = await raw(
    server,
    `POST /v1/release HTTP/1.1\r\nhost: localhost\r\n${H2C}${more}${own}\r\n${body}`,
    '}\n',
  )
  expect(got.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`])
})

it('sends a waiter away whose request was followed by an offer', async () => {
  const server = await serve({ state: null })
  await take(server, { name: 'a', ttl: 60_000 })
  const body = '{"name":"a","wait":20000}'
  const head = `POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\nholdfast-request: 1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  expect(await raw(server, head + body + offer)).toBe('')
  await eventually('nobody waits', async () => (await look(server, 'a')).waiters.length === 0)
})

it('takes a lock back that was granted on a connection that is gone', async () => {
  const server = await serve({ state: null })
  const body = '{"name":"b","ttl":60000}'
  const head = `POST /v1/acquire HTTP/1.1\r\nhost: localhost\r\nholdfast-request: 1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  expect(await raw(server, head + body + offer)).toBe('')
  await eventually('nobody holds it', async () => (await look(server, 'b')).holders.length === 0)
})

it('remembers nothing of offers that were made one after the other', async () => {
  const warnings: Error[] = []
  const warned = (warning: Error): void => void warnings.push(warning)
  process.on('warning', warned)
  afterwards(() => process.off('warning', warned))
  const server = await serve({ state: null })
  const socket = connect(portOf(server), '127.0.0.1')
  afterwards(() => socket.destroy())
  for (let index = 0; index < 30; index++) {
    socket.write(offer)
    const bytes = await new Promise<Buffer>((resolve) => void socket.once('data', resolve))
    expect(bytes.toString('latin1')).toContain('HTTP/1.1 200')
  }
  expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([])
})

it('leaves less unread than there is memory', () => {
  const { heap_size_limit: heap } = getHeapStatistics()
  expect(resolveLimits().unreadInAll).toBeLessThanOrEqual(heap / 4)
  expect(resolveLimits({}, 96 * 2 ** 20).unreadInAll).toBe(24 * 2 ** 20)
  expect(resolveLimits({}, 2 ** 40).unreadInAll).toBe(256 * 2 ** 20)
  expect(resolveLimits({ unreadInAll: 5 }, 2 ** 40).unreadInAll).toBe(5)
})

it('takes no more connections than the system has files for', () => {
  const of = (files: number): readonly number[] => {
    const { connections, idleConnections, idlePerAddress } = resolveLimits({}, 2 ** 40, files)
    return [connections, idleConnections, idlePerAddress]
  }
  expect(of(Infinity)).toEqual([16_000, 1000, 500])
  expect(of(65_536)).toEqual([16_000, 1000, 500])
  expect(of(1024)).toEqual([896, 448, 224])
  expect(of(64)).toEqual([32, 16, 8])
  expect(resolveLimits({ connections: 5000 }, 2 ** 40, 1024).connections).toBe(5000)
})
