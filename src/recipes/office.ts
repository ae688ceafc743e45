import type { Holdfast } from '../locks/holdfast.ts'
import { onAbort } from '../runtime/abort-listeners.ts'

/**
 * Candidates of one process for one office stand at the store one after the other. Two in the lock's line would be handed
 * one grant, the later with a token from its middle, and the store shows a grant's first token: a leader would not be
 * the one that everybody sees.
 */
const offices = new WeakMap<Holdfast, Map<string, Candidacy[]>>()

type Candidacy = () => void

/** Resolves with the function that lets the next one stand, or with null when the signal aborts first. */
export async function standAlone(
  holdfast: Holdfast,
  name: string,
  signal: AbortSignal,
): Promise<(() => void) | null> {
  const byName = offices.get(holdfast) ?? new Map<string, Candidacy[]>()
  offices.set(holdfast, byName)
  const line = byName.get(name) ?? []
  byName.set(name, line)
  const leave = (candidacy: Candidacy): void => {
    const place = line.indexOf(candidacy)
    if (place < 0) return
    line.splice(place, 1)
    if (line.length === 0) byName.delete(name)
    else if (place === 0) line[0]?.()
  }
  return new Promise((resolve) => {
    const candidacy: Candidacy = () => {
      forget()
      resolve(() => leave(candidacy))
    }
    const forget = onAbort(signal, () => {
      leave(candidacy)
      resolve(null)
    })
    if (line.push(candidacy) === 1) candidacy()
  })
}
