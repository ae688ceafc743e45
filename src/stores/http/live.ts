import type { Operation } from '../holdfast/wire.ts'

/** Which claims the server has of us: while there are any, it may have something to tell. */
export class Live {
  /** Somebody stands in line. */
  waits = false
  private readonly held = new Set<string>()

  get any(): boolean {
    return this.waits || this.held.size > 0
  }

  note(operation: Operation, payload: unknown, answer: unknown): void {
    if (operation === 'claim') this.one(payload, answer)
    else if (operation === 'renew') {
      const answers: unknown[] = Array.isArray(answer) ? answer : []
      renewalsOf(payload).forEach((one, index) => this.one(one, answers[index]))
    } else if (operation === 'withdraw') this.gone(payload)
    else if (operation === 'release') {
      this.gone(payload)
      const { next } = payload as { readonly next?: unknown }
      const { next: told } = (answer ?? {}) as { readonly next?: unknown }
      if (next !== undefined) this.one(next, told)
    }
  }

  private one(claim: unknown, answer: unknown): void {
    const { kind } = (answer ?? {}) as { readonly kind?: unknown }
    if (kind === 'held' || kind === 'renewed') this.held.add(idOf(claim))
    else if (kind === 'lost') this.gone(claim)
  }

  private gone(claim: unknown): void {
    this.held.delete(idOf(claim))
  }
}

const renewalsOf = (payload: unknown): readonly unknown[] => payload as readonly unknown[]
const idOf = (claim: unknown): string => (claim as { readonly id: string }).id
