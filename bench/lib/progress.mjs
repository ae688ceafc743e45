// What is running, on the terminal: one line that changes in place, or plain lines when nobody watches.
const seconds = (ms) => `${Math.round(ms / 1000)} s`

export class Progress {
  #out
  #live
  #began = Date.now()
  #done = 0
  #total = 0

  constructor(out = process.stderr) {
    this.#out = out
    this.#live = out.isTTY === true
  }

  /** How many rounds there will be in all. */
  expect(total) {
    this.#total = total
  }

  /** A heading that stays. */
  say(text) {
    this.#clear()
    this.#out.write(`${text}\n`)
  }

  /** The round that starts now. */
  begin(workload, contestant, round, rounds) {
    const line = `${this.#place()} ${workload} · ${contestant} · round ${round}/${rounds}`
    if (this.#live) this.#out.write(`\r\x1b[2K${line.slice(0, (this.#out.columns ?? 80) - 1)}`)
    else this.#out.write(`${line}\n`)
  }

  end() {
    this.#done++
  }

  finish() {
    this.#clear()
    this.#out.write(`finished in ${seconds(Date.now() - this.#began)}\n`)
  }

  #place() {
    return `[${this.#done + 1}/${this.#total}, ${seconds(Date.now() - this.#began)}]`
  }

  #clear() {
    if (this.#live) this.#out.write('\r\x1b[2K')
  }
}
