import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { expect, it } from 'vitest'

import { afterwards, eventually, temporaryFolder } from './helpers.ts'

const program = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

interface Seen {
  readonly overlaps: readonly string[]
  readonly lost: readonly string[]
  readonly errors: readonly string[]
}

function start(name: string, args: readonly string[]): ChildProcess {
  const child = fork(program(name), args)
  afterwards(() => child.kill('SIGKILL'))
  return child
}

function heard<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`it ended with ${code}`)))
  })
}

async function launch(
  listen: string,
  state: string,
): Promise<{ child: ChildProcess; url: string; startsIn: number }> {
  const child = start('crash-server.mjs', [listen, state])
  return { child, ...(await heard<{ url: string; startsIn: number }>(child)) }
}

const RESTARTS = 20
const CLIENTS = 3
const WORK = { quick: 10, http: 3, 'shared-by-both-doors': 3 }

it(`loses no lease and lets nobody in twice in ${RESTARTS} planned restarts under load`, async () => {
  const folder = temporaryFolder()
  const state = join(temporaryFolder(), 'state.json')
  let server = await launch('127.0.0.1:0', state)
  const listen = server.url.replace('holdfast://', '')
  const clients = Array.from({ length: CLIENTS }, () => start('restart-client.mjs', [server.url, folder]))
  const waits: number[] = []
  const entered = (name: string): number => {
    const file = join(folder, `${name}.tokens`)
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length : 0
  }
  // In every run there is work, of every kind, however slow the machine is.
  const works = async (): Promise<void> => {
    for (const [name, count] of Object.entries(WORK)) {
      const before = entered(name)
      await eventually(`${name} goes on`, () => entered(name) >= before + count, 60_000)
    }
  }
  for (let round = 0; round < RESTARTS; round++) {
    await works()
    const ended = new Promise((resolve) => void server.child.once('exit', resolve))
    server.child.kill('SIGTERM')
    await ended
    server = await launch(listen, state)
    waits.push(server.startsIn)
  }
  await works()
  const all = await Promise.all(
    clients.map((client) => {
      const seen = heard<Seen>(client)
      client.send('stop')
      return seen
    }),
  )
  expect(all.flatMap(({ overlaps }) => overlaps)).toEqual([])
  expect(all.flatMap(({ lost }) => lost)).toEqual([])
  expect(all.flatMap(({ errors }) => errors)).toEqual([])
  // It never waited for anything to end.
  expect(waits).toEqual(waits.map(() => 0))
  expect(entered('long')).toBeGreaterThan(1)
  for (const file of readdirSync(folder)) {
    expect(file).toMatch(/\.tokens$/)
    const tokens = readFileSync(join(folder, file), 'utf8').trim().split('\n').map(BigInt)
    const backwards = tokens.filter((token, index) => index > 0 && token <= (tokens[index - 1] ?? 0n))
    expect({ file, backwards }).toEqual({ file, backwards: [] })
  }
}, 600_000)
