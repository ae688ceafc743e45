import { afterEach, describe, expect, it } from 'vitest'

import { memoryStore } from '../../../src/stores/memory/index.ts'
import { conformance } from '../../../src/testkit/conformance.ts'
import { runCase } from '../../../src/testkit/run-case.ts'
import { SocketServer } from '../../../src/testkit/socket-server.ts'
import { socketStore } from '../../../src/testkit/socket-store.ts'
import { decode, encode, Lines } from '../../../src/testkit/socket-wire.ts'

const servers: SocketServer[] = []

async function serve(port?: number): Promise<SocketServer> {
  const server = await SocketServer.listen(memoryStore(), port === undefined ? {} : { port })
  servers.push(server)
  return server
}

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

describe('the lines of a socket', () => {
  it('carry bigints, and are found wherever packets end', () => {
    const messages = [{ token: 2n ** 70n, text: 'zwei\nZeilen: ü🔑' }, [1n, null], 'plain']
    const bytes = Buffer.from(messages.map(encode).join(''))
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const lines = new Lines()
      const found: unknown[] = []
      for (let at = 0; at < bytes.length; at += size) {
        found.push(...lines.take(bytes.subarray(at, at + size)).map(decode))
      }
      expect(found).toEqual(messages)
    }
  })
})

describe('a store behind a socket', () => {
  const quick = ['claim/free', 'queue/fifo', 'queue/fused', 'events/granted', 'events/stopped', 'renew/mixed']
  it.each(quick)('keeps the contract: %s', async (id) => {
    const server = await serve()
    const testCase = conformance().find((candidate) => candidate.id === id)
    if (testCase === undefined) throw new Error(`there is no case ${id}`)
    const result = await runCase(testCase, { name: 'socket', createStore: () => socketStore(server) })
    expect(result).toEqual({ status: 'passed' })
  })

  it('answers unknown while there is no server, and works again when there is one', async () => {
    const { port } = await serve()
    const store = socketStore({ host: '127.0.0.1', port })
    expect(await store.inspect('n', 1000)).toMatchObject({ name: 'n' })
    await servers.pop()?.close()
    expect(await store.inspect('n', 1000)).toMatchObject({ kind: 'unknown' })
    await serve(port)
    expect(await store.inspect('n', 1000)).toMatchObject({ name: 'n' })
    await store.close()
    expect(await store.inspect('n', 1000)).toMatchObject({ kind: 'unknown' })
  })

  it('tells its sessions after a reconnect that they may have missed something', async () => {
    const { port } = await serve()
    const store = socketStore({ host: '127.0.0.1', port })
    const heard: string[] = []
    await store.watch('s', ({ kind }) => heard.push(kind), 1000)
    expect(heard).toEqual([])
    await servers.pop()?.close()
    await serve(port)
    // The first request may still meet the end of the old connection.
    await store.inspect('n', 1000)
    await store.inspect('n', 1000)
    expect(heard).toEqual(['gap'])
    await store.close()
  })
})
