import { createHash, timingSafeEqual } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'

import { InvalidArgumentError } from '../core/errors.ts'
import { Principal, RIGHTS } from './rights.ts'
import type { Right } from './rights.ts'

/**
 * The tokens file: one principal a line, `name sha256:<hex> rights prefix…`, rights separated by commas, `*` for every
 * name; `#` begins a comment. It holds no secret: whoever reads it cannot make a token from it.
 */

interface Entry {
  readonly digest: Buffer
  readonly principal: Principal
}

/** 128 bits take 22 characters in base64. A plain hash is enough for what nobody can guess, and for nothing shorter. */
const SHORTEST = 22
const HASH = /^sha256:([0-9a-f]{64})$/

const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest()

/** What the tokens file holds of a token. */
export function hashToken(token: string): string {
  if (token.length < SHORTEST) {
    const message = `token must have at least ${SHORTEST} characters, from a random source (openssl rand -base64 32)`
    throw new InvalidArgumentError(message, { argument: 'token' })
  }
  return `sha256:${digestOf(token).toString('hex')}`
}

export class Tokens {
  private entries: readonly Entry[]

  constructor(entries: readonly Entry[]) {
    this.entries = entries
  }

  get size(): number {
    return this.entries.length
  }

  /**
   * Takes over what another file says. A principal whose token is still there stays the same one, with what it has and
   * waits for; one whose token is gone may do nothing any more, also on connections that it has.
   */
  replace({ entries }: Tokens): void {
    const known = new Map(this.entries.map((entry) => [keyOf(entry), entry.principal]))
    const gone = new Set(this.entries.map(({ principal }) => principal))
    this.entries = entries.map((entry) => {
      const principal = known.get(keyOf(entry))
      if (principal === undefined) return entry
      gone.delete(principal)
      principal.become(entry.principal)
      return { ...entry, principal }
    })
    for (const principal of gone) principal.become(null)
  }

  /** All of them are compared, each in the same time, whatever was found before. */
  principalOf(token: string): Principal | null {
    const digest = digestOf(token)
    let found: Principal | null = null
    for (const entry of this.entries) if (timingSafeEqual(entry.digest, digest)) found = entry.principal
    return found
  }

  named(name: string): Principal | null {
    return this.entries.find(({ principal }) => principal.name === name)?.principal ?? null
  }
}

const keyOf = ({ digest, principal }: Entry): string => `${principal.name} ${digest.toString('hex')}`

export function parseTokens(text: string): Tokens {
  const entries: Entry[] = []
  const lines = new Map<string, number>()
  text.split('\n').forEach((line, index) => {
    const words = (line.split('#')[0] ?? '').trim()
    if (words === '') return
    const entry = parseLine(words, index + 1)
    const hash = entry.digest.toString('hex')
    const first = lines.get(hash)
    // Which of them counts, nobody could tell.
    if (first !== undefined)
      throw refuse(`has the same token in lines ${first} and ${index + 1}. Give each line a token of its own`)
    lines.set(hash, index + 1)
    entries.push(entry)
  })
  if (entries.length === 0) throw refuse('has no entry')
  return new Tokens(entries)
}

function parseLine(words: string, number: number): Entry {
  const [name = '', hash = '', rightWords = '', ...prefixes] = words.split(/\s+/)
  const digest = HASH.exec(hash)?.[1]
  if (digest === undefined) throw refuse(`line ${number}: the second word must be sha256:<64 hex digits>`)
  const rights = rightWords.split(',')
  const wrong = rights.find((right) => !RIGHTS.includes(right as Right))
  if (wrong !== undefined) throw refuse(`line ${number}: "${wrong}" is none of ${RIGHTS.join(', ')}`)
  if (prefixes.length === 0) throw refuse(`line ${number}: names no prefix; * stands for every name`)
  const pattern = prefixes.find((prefix) => prefix !== '*' && prefix.includes('*'))
  if (pattern !== undefined)
    throw refuse(
      `line ${number}: "${pattern}" is a pattern. A prefix stands for all names within it, without a *`,
    )
  return { digest: Buffer.from(digest, 'hex'), principal: new Principal(name, rights as Right[], prefixes) }
}

/** Reads a tokens file. One that others may change would let them in. */
export function readTokens(path: string): Tokens {
  const found = statSync(path)
  if (found.isDirectory()) throw refuse(`is a folder: ${path}`)
  if (process.platform !== 'win32' && (found.mode & 0o022) !== 0) {
    throw refuse(`can be changed by others. Run: chmod go-w ${path}`)
  }
  return parseTokens(readFileSync(path, 'utf8'))
}

function refuse(problem: string): InvalidArgumentError {
  return new InvalidArgumentError(`The tokens file ${problem}`, { argument: 'tokensFile' })
}
