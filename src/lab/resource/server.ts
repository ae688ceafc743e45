import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { createInterface } from 'node:readline'

import type { FromResource, Reading, ResourceReply, ResourceRequest } from './protocol.ts'
import { Register } from './register.ts'

/** The program of the resource: a witness of its own, in a process that no fault touches. */

interface Twins {
  readonly unfenced: Register
  readonly fenced: Register
}

const registers = new Map<string, Twins>()

function twinsOf(name: string): Twins {
  const known = registers.get(name)
  if (known !== undefined) return known
  const made = { unfenced: new Register(false), fenced: new Register(true) }
  registers.set(name, made)
  return made
}

function answer(request: ResourceRequest): ResourceReply {
  const { id, name, client } = request
  const { unfenced, fenced } = twinsOf(name)
  const token = BigInt(request.token)
  if (request.do === 'read') {
    return { id, reading: { unfenced: unfenced.read(client, token), fenced: fenced.read(client, token) } }
  }
  const write = (register: Register, read: Reading['fenced']): boolean =>
    read !== null && register.write({ client, token, read, value: read + 1 })
  const { read } = request
  return { id, accepted: { unfenced: write(unfenced, read.unfenced), fenced: write(fenced, read.fenced) } }
}

function serve(socket: Socket): void {
  socket.on('error', () => undefined)
  const lines = createInterface({ input: socket })
  lines.on('error', () => undefined)
  lines.on('line', (line) => {
    const reply = answer(JSON.parse(line) as ResourceRequest)
    if (socket.writable) socket.write(`${JSON.stringify(reply)}\n`)
  })
}

const tell = (message: FromResource): void => void process.send?.(message)

process.on('disconnect', () => process.exit())
// Ctrl-C reaches everybody at a terminal, and what ends a job all that belong to it; the lab decides when this ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGHUP']) process.on(signal, () => undefined)
process.on('message', () => {
  const logs = [...registers].map(([name, { unfenced, fenced }]) => ({
    name,
    unfenced: unfenced.log,
    fenced: fenced.log,
    final: { unfenced: unfenced.value, fenced: fenced.value },
  }))
  tell({ kind: 'logs', logs })
})
const server = createServer({ noDelay: true }, serve)
server.listen(0, '127.0.0.1', () => tell({ kind: 'listening', port: (server.address() as AddressInfo).port }))
