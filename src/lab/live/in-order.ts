/** Of a list in which those come last that it is true of: the place of the first of them. A run of hours has a hundred thousand of everything. */
export function firstWhere<T>(inOrder: readonly T[], is: (one: T) => boolean): number {
  let [low, high] = [0, inOrder.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (is(inOrder[middle] as T)) high = middle
    else low = middle + 1
  }
  return low
}

/** Times of which one finds those that meet another without looking at all of them. */
export class Times<T extends { readonly from: number; readonly to: number }> {
  private readonly inOrder: readonly T[]
  /** The latest end of all up to this one. */
  private readonly ends: readonly number[]

  constructor(times: Iterable<T>) {
    this.inOrder = [...times].sort((a, b) => a.from - b.from)
    let latest = -Infinity
    this.ends = this.inOrder.map(({ to }) => (latest = Math.max(latest, to)))
  }

  /** In the order in which they began. */
  meeting(from: number, to: number): T[] {
    const begin = firstWhere(this.ends, (end) => end >= from)
    const end = firstWhere(this.inOrder, (one) => one.from > to)
    return this.inOrder.slice(begin, end).filter((one) => one.to >= from)
  }
}

export function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}
