import { hash } from 'node:crypto'
import { FORBIDDEN } from './client/paths.ts'

/** Names of locks and of their nodes. */

/** A lock's name as one part of a path. Everything that ZooKeeper takes stays readable, so that Java can use the same names. */
export function encodeName(name: string): string {
  if (!name.startsWith('.') && !name.includes('/') && !name.includes('%') && !FORBIDDEN.test(name))
    return name
  if (name === '.' || name === '..') return name.replaceAll('.', '%2E')
  // By characters, not by UTF-16 units: half of a pair has no UTF-8.
  return Array.from(name, (char) =>
    char === '/' || char === '%' || FORBIDDEN.test(char) ? percent(char) : char,
  ).join('')
}

function percent(char: string): string {
  return Array.from(Buffer.from(char), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(
    '',
  )
}

/** Undefined: no lock's name. */
export function decodeName(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/**
 * Curator's protection against lost replies: a random id at the beginning of a node's name, by which its creator can find it
 * again. Made from the claim's id, so that a claim that is repeated finds what its first request made. A session's claims
 * are numbered, so the session is hashed, and the number put behind it: a person can tell which are of one session.
 */
export function protection(id: string): string {
  const dot = id.lastIndexOf('.')
  const session = id.slice(0, dot + 1)
  const number = id.slice(dot + 1)
  if (!NUMBER.test(number)) return `${uuid(id)}-`
  return `${uuid(session).slice(0, -LAST_PART)}${number.padStart(LAST_PART, '0')}-`
}

const LAST_PART = 12
/** Short enough for the last part of a uuid, and written in the only way. */
const NUMBER = /^(?:0|[1-9]\d{0,11})$/

function uuid(text: string): string {
  const hex = hash('sha256', text, 'hex')
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ]
  return `_c_${parts.join('-')}`
}
