/** Just enough of Prometheus' text format: counters, gauges and histograms with fixed labels. */

type Labels = Readonly<Record<string, string>>

interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly lines: () => Iterable<string>
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

export class Metrics {
  private readonly families: Family[] = []
  private readonly labels: Labels

  /** These labels stand on every line. */
  constructor(labels: Labels) {
    this.labels = labels
  }

  counter(name: string, help: string): Counter {
    const counter = new Counter(name, this.labels)
    this.families.push({ name, help, type: 'counter', lines: () => counter.lines() })
    return counter
  }

  gauge(name: string, help: string, read: () => number): void {
    this.families.push({ name, help, type: 'gauge', lines: () => [`${name}${text(this.labels)} ${read()}`] })
  }

  histogram(name: string, help: string): Histogram {
    const histogram = new Histogram(name, this.labels)
    this.families.push({ name, help, type: 'histogram', lines: () => histogram.lines() })
    return histogram
  }

  toString(): string {
    let page = ''
    for (const { name, help, type, lines } of this.families) {
      page += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
      for (const line of lines()) page += `${line}\n`
    }
    return page
  }
}

export class Counter {
  private readonly name: string
  private readonly common: Labels
  private readonly counts = new Map<string, number>()

  constructor(name: string, common: Labels) {
    this.name = name
    this.common = common
  }

  /** One more, under the value of one label; none where the counter has no label of its own. */
  add(label = '', value = '', by = 1): void {
    const key = label === '' ? '' : `${label}\0${value}`
    this.counts.set(key, (this.counts.get(key) ?? 0) + by)
  }

  *lines(): Iterable<string> {
    for (const [key, count] of this.counts) {
      const [label = '', value = ''] = key.split('\0')
      yield `${this.name}${text(label === '' ? this.common : { ...this.common, [label]: value })} ${count}`
    }
  }
}

export class Histogram {
  private readonly name: string
  private readonly common: Labels
  private readonly buckets = SECONDS.map(() => 0)
  private count = 0
  private sum = 0

  constructor(name: string, common: Labels) {
    this.name = name
    this.common = common
  }

  observe(ms: number): void {
    const seconds = ms / 1000
    const index = SECONDS.findIndex((bound) => seconds <= bound)
    if (index >= 0) this.buckets[index] = (this.buckets[index] ?? 0) + 1
    this.count++
    this.sum += seconds
  }

  *lines(): Iterable<string> {
    let below = 0
    for (const [index, bound] of SECONDS.entries()) {
      below += this.buckets[index] ?? 0
      yield `${this.name}_bucket${text({ ...this.common, le: String(bound) })} ${below}`
    }
    yield `${this.name}_bucket${text({ ...this.common, le: '+Inf' })} ${this.count}`
    yield `${this.name}_sum${text(this.common)} ${this.sum}`
    yield `${this.name}_count${text(this.common)} ${this.count}`
  }
}

function text(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escape(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escape(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
}
