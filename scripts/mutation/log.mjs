// What was found out about which mistake, line by line: a run that was broken off goes on.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** The log of a run: what was found out about which mistake, and the first run of which tree. */
export class Log {
  constructor(file, hash) {
    this.file = file
    this.hash = hash
    const lines = file !== undefined && existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    this.entries = lines.filter((line) => line !== '').map((line) => JSON.parse(line))
  }

  get base() {
    return this.entries.findLast((each) => each.kind === 'base' && each.hash === this.hash)
  }

  /** Noticed stays noticed while the source is what it was; what survived may be noticed by other tests. */
  of(mutant) {
    const key = keyOf(mutant)
    return this.entries.findLast((each) => each.key === key && (each.by !== null || each.hash === this.hash))
  }

  add(entry) {
    const whole = { ...entry, hash: this.hash }
    this.entries.push(whole)
    if (this.file !== undefined) appendFileSync(this.file, `${JSON.stringify(whole)}\n`)
  }
}

export const keyOf = ({ file, line, column, before, from, to }) =>
  [file, line, column, before.trim(), from, to].join('|')
