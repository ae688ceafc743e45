import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

// JSON has no word for these two, and both mean something here: a task that got nothing makes fairness infinite.
const toText = (_key, value) => {
  if (value === Infinity) return 'Infinity'
  if (typeof value === 'number' && Number.isNaN(value)) return undefined
  // Nobody reads the sixteenth digit of a measurement, and a reviewer has to scroll past it.
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value
}

const fromText = (_key, value) => (value === 'Infinity' ? Infinity : value)

export function writeResults(path, results) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(results, toText, 1)}\n`)
}

export const readResults = (path) => JSON.parse(readFileSync(path, 'utf8'), fromText)
