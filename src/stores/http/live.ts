import { Overtaken } from '../holdfast/overtaken.ts'
import type { Operation } from '../holdfast/wire.ts'

interface Claim {
  readonly id: string
}

/** Which claims the server has of us: while there are any, it may have something to tell. */
export class Live {
  /** Somebody stands in line. */
  waits = false
  private readonly held = new Set<string>()
  private readonly overtaken = new Overtaken()

  get any(): boolean {
    return this.waits || this.held.size > 0
  }

  /** Something is asked. What is returned is to be told of the answer, whatever it is. */
  begin(operation: Operation, payload: unknown): (answer: unknown) => void {
    const claims = claimsIn(operation, payload).map(({ id }) => [id, this.overtaken.begin(id)] as const)
    return (answer) => {
      if (operation === 'release' || operation === 'withdraw') this.gone((payload as Claim).id)
      const answers = answersIn(operation, answer)
      claims.forEach(([id, since], index) => {
        if (this.overtaken.end(id, since)) this.note(id, answers[index])
      })
    }
  }

  private note(id: string, answer: unknown): void {
    const { kind } = (answer ?? {}) as { readonly kind?: unknown }
    if (kind === 'held' || kind === 'renewed') this.held.add(id)
    else if (kind === 'lost') this.held.delete(id)
  }

  private gone(id: string): void {
    this.held.delete(id)
    this.overtaken.givenBack(id)
  }
}

/** Those that may be held from the answer on. */
function claimsIn(operation: Operation, payload: unknown): readonly Claim[] {
  if (operation === 'claim') return [payload as Claim]
  if (operation === 'renew') return payload as readonly Claim[]
  const { next } = (operation === 'release' ? payload : {}) as { readonly next?: Claim }
  return next === undefined ? [] : [next]
}

function answersIn(operation: Operation, answer: unknown): readonly unknown[] {
  if (operation === 'renew') return Array.isArray(answer) ? (answer as unknown[]) : []
  if (operation === 'release') return [((answer ?? {}) as { readonly next?: unknown }).next]
  return [answer]
}
