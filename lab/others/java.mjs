// Redisson and Curator in a Java process of each client's own, spoken to in lines. What the lab does to the client it does to both.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

import { labClient } from './adapter.mjs'
import { classpathOf } from './maven.mjs'

/** Small and quick to start: several of them run beside each other. */
const JAVA = ['-Xmx160m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']

export const redisson = ({ url, ttl }) => open('redisson', 'RedissonLocks', url, ttl)
export const curator = ({ url, ttl }) => open('curator', 'CuratorLocks', new URL(url).host, ttl)

async function open(kind, program, address, ttl) {
  const args = [...JAVA, '-cp', classpathOf(kind), program, address, String(ttl)]
  // As its client does, it ends when the lab says so, and not when the lab's whole job is told to end.
  const child = spawn('java', args, { detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  const said = new Answers(child)
  await said.next()
  const ask = (line) => {
    child.stdin.write(`${line}\n`)
    return said.next()
  }
  const take = async (name, waitMs) => {
    const lost = new AbortController()
    said.onLost = () => lost.abort()
    const answer = await ask(`take ${encodeURIComponent(name)} ${waitMs}`)
    if (answer === 'busy') return null
    return {
      ...(kind === 'redisson' && { token: BigInt(answer) }),
      signal: lost.signal,
      held: () => true,
      sure: async () => (await ask(`sure ${encodeURIComponent(name)}`)) === 'true',
      release: () => ask(`release ${encodeURIComponent(name)}`),
    }
  }
  const close = async () => {
    await ask('close')
    child.stdin.end()
  }
  const stalls = (heard) => void (said.onStall = heard)
  return labClient({ take, close, companion: child.pid, stalls })
}

/** The lines of the Java process: an answer to each question in turn, and news in between. */
class Answers {
  onLost = () => {}
  onStall = () => {}
  #waiting = []

  constructor(child) {
    createInterface({ input: child.stdout }).on('line', (line) => this.#heard(line))
    child.on('exit', () => this.#ended())
    child.stdin.on('error', () => {})
  }

  next() {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }

  #heard(line) {
    if (line === 'lost') return this.onLost()
    const [kind, ...rest] = line.split(' ')
    if (kind === 'stall') return this.onStall(Number(rest[0]))
    const { resolve, reject } = this.#waiting.shift() ?? {}
    if (kind === 'error') reject?.(new Error(rest.join(' ')))
    else resolve?.(rest.join(' '))
  }

  #ended() {
    for (const { reject } of this.#waiting) reject(new Error('the Java process ended'))
    this.#waiting = []
  }
}
