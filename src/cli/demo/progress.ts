import { coloured, paint, print } from '../table.ts'

const WIDTH = 40

/** How far a run is: one line that is written over and over on a terminal, and only its end elsewhere. */
export class Progress {
  private readonly label: string
  private readonly seats: number
  private readonly live: boolean = coloured(process.stdout)
  private sold = 0

  constructor(label: string, seats: number) {
    this.label = label
    this.seats = seats
  }

  sale(): void {
    this.sold++
    if (this.live) process.stdout.write(`\r${this.line()}`)
  }

  /** A line of its own between the others. */
  say(text: string): void {
    if (this.live) process.stdout.write('\r\u001b[K')
    print(text)
  }

  end(): void {
    if (this.live) process.stdout.write('\r\u001b[K')
    print(this.line())
  }

  private line(): string {
    const full = Math.min(WIDTH, Math.round((this.sold / this.seats) * WIDTH))
    const bar = '█'.repeat(full) + '·'.repeat(WIDTH - full)
    const over = this.sold > this.seats
    return `${this.label.padEnd(16)} ${paint(over ? 'red' : 'green', bar)} ${String(this.sold).padStart(4)} sold`
  }
}
