/** Numbers that look random and are the same for the same seed, on every machine. */
export class Random {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
  }

  /** 0 … 2^32-1. A Weyl sequence through a 32-bit mixer: small, and good enough to choose among schedules. */
  uint32(): number {
    this.state = (this.state + 0x9e3779b9) >>> 0
    let x = this.state
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad)
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97)
    return (x ^ (x >>> 15)) >>> 0
  }

  /** 0 ≤ x < 1. */
  next(): number {
    return this.uint32() / 2 ** 32
  }

  /** A whole number, 0 ≤ x < bound. */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0]
  }
}
