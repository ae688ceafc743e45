import { execFileSync } from 'node:child_process'
import { connect } from 'node:net'

import type { ClaimAnswer, ClaimRequest, Held, Store } from '../../../src/core/contract.ts'
import { memcachedStore } from '../../../src/stores/memcached/index.ts'
import { otherMemcachedBuilds } from '../../../scripts/services/memcached.mjs'

export interface Place {
  readonly host: string
  readonly port: number
}

/** The machine's memcached and every other build that the environment names. */
export const builds: readonly { readonly label: string; readonly command?: string }[] = [
  { label: 'the memcached of this machine' },
  ...otherMemcachedBuilds().map((command) => ({ label: versionOf(command), command })),
]

function versionOf(command: string): string {
  return execFileSync(command, ['-V'], { encoding: 'utf8' }).trim()
}

/** Sends bytes on a connection of its own and collects what comes until `done` says that it is enough. */
export function talk({ host, port }: Place, bytes: string, done: (text: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host, () => socket.write(bytes, 'latin1'))
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      text += chunk
      if (!done(text)) return
      socket.destroy()
      resolve(text)
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
  })
}

const lines = (text: string): string[] => text.split('\r\n').filter((line) => line !== '')

/** One command, one line. */
export async function command(at: Place, text: string): Promise<string> {
  return (await talk(at, `${text}\r\n`, (all) => all.includes('\r\n'))).trimEnd()
}

/** All keys, by a walk through the hash table: one through the lists may miss what moves meanwhile. */
export async function keys(at: Place): Promise<string[]> {
  const dump = await talk(at, 'lru_crawler metadump hash\r\n', (all) =>
    /(^|\n)END\r\n$|^(BUSY|ERROR)/.test(all),
  )
  // One walk at a time, and the server makes some for itself.
  if (dump.startsWith('BUSY')) return keys(at)
  return lines(dump).flatMap((line) => {
    const key = /^key=(\S+)/.exec(line)?.[1]
    return key === undefined ? [] : [decodeURIComponent(key)]
  })
}

/** What is left of locks: items that somebody holds, and descriptions. Tombstones, counters and the clock stay on purpose. */
export async function leftovers(at: Place): Promise<string[]> {
  const left: string[] = []
  for (const key of await keys(at)) {
    if (/^holdfast:(f:|F:|clock$)/.test(key)) continue
    const reply = lines(await talk(at, `mg ${key} v\r\n`, (all) => /^EN\r\n|\r\n.*\r\n$/.test(all)))
    if (reply[0] === 'EN' || (/^holdfast:[lL]:/.test(key) && /[13579]$/.test(reply[1] ?? ''))) continue
    left.push(`${key} = ${reply[1]}`)
  }
  return left
}

let made = 0

/** A request for a mutex, with an id of its own. */
export function request(name: string, changes: Partial<ClaimRequest> = {}): ClaimRequest {
  made += 1
  const id = `${Math.random().toString(36).slice(2)}.${made}`
  return {
    name,
    id,
    weight: 1,
    capacity: 1,
    ttl: 10_000,
    patience: 5000,
    tokens: 1,
    whenBusy: 'try',
    owner: 'test',
    ...changes,
  }
}

export const TIMEOUT_MS = 2000

export async function take(store: Store, wanted: ClaimRequest, timeout: number = TIMEOUT_MS): Promise<Held> {
  const answer: ClaimAnswer = await store.claim(wanted, timeout)
  if (answer.kind === 'held') return answer
  throw new Error(
    `not granted: ${answer.kind}${answer.kind === 'unknown' ? ` (${String(answer.cause)})` : ''}`,
  )
}

const undo: (() => unknown)[] = []

/** For later: `undoAll` does it, the last first. */
export function afterwards(what: () => unknown): void {
  undo.push(what)
}

export async function undoAll(): Promise<void> {
  for (const one of undo.splice(0).reverse()) await one()
}

/** A store that is closed after the test. */
export function open({ host, port }: Place): Store {
  const store = memcachedStore(`memcached://${host}:${port}`)
  afterwards(() => store.close())
  return store
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms))

/** Asks until there is an answer. */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined>,
  within = 10_000,
): Promise<T> {
  for (const end = performance.now() + within; performance.now() < end; await sleep(20)) {
    const seen = await check()
    if (seen !== undefined) return seen
  }
  throw new Error(`not within ${within} ms: ${what}`)
}
