import { connect } from 'node:net'
import type { Socket } from 'node:net'

import type { RunningServer } from '../../../src/server/index.ts'
import { afterwards, portOf } from '../helpers.ts'

/** A session as an attacker speaks it: any line, any number of them, and reading only if it likes to. */
export interface RawSession {
  readonly socket: Socket
  /** All that the server said unasked. */
  readonly events: readonly unknown[]
  ask(operation: string, payload: unknown): Promise<Record<string, unknown>>
}

export function upgrade(token?: string): string {
  const auth = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
  return `GET /v1/session HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: holdfast.1\r\nholdfast-request: 1\r\n${auth}\r\n`
}

export async function openSession(server: RunningServer, token?: string): Promise<RawSession> {
  const socket = connect(portOf(server), '127.0.0.1')
  afterwards(() => socket.destroy())
  socket.setEncoding('utf8')
  const events: unknown[] = []
  const open = new Map<number, (answer: Record<string, unknown>) => void>()
  let number = 0
  let rest = ''
  let began: () => void
  const standing = new Promise<void>((resolve) => (began = resolve))
  socket.on('error', () => undefined)
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (!line.startsWith('[')) continue
      const [id, said] = JSON.parse(line) as [number, Record<string, unknown>]
      if (id > 0) open.get(id)?.(said)
      else if (said['kind'] === 'hello') began()
      else events.push(said)
    }
  })
  socket.write(upgrade(token))
  await standing
  return {
    socket,
    events,
    ask: (operation, payload) =>
      new Promise((resolve) => {
        number++
        open.set(number, resolve)
        socket.write(`${JSON.stringify([number, operation, payload, 5000])}\n`)
      }),
  }
}
