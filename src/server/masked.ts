import { createHash } from 'node:crypto'

/** Claim ids as they are shown to those who did not make them: whoever knows one can release the claim. */

const MASKED = /^hidden\.[\w-]{22}$/

export function masked(id: string): string {
  return `hidden.${createHash('sha256').update(id).digest('base64url').slice(0, 22)}`
}

/** Whether it looks like one that another lock server masked. Any client could choose such an id for itself. */
export function isMasked(id: string): boolean {
  return MASKED.test(id)
}
