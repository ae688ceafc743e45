// A counter that is read, waited over and written back without any protection but the lock that is measured. Two
// sections at once lose an update, and then the count is short.
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'

const SIZE = 8

/** For tasks of one process. */
export class LocalWitness {
  #value = 0
  #expected = 0

  read() {
    return this.#value
  }

  write(value) {
    this.#expected++
    this.#value = value
  }

  get updates() {
    return this.#expected
  }

  get lost() {
    return this.#expected - this.#value
  }

  close() {}
}

/** For several processes: eight bytes of a file. */
export class FileWitness {
  #file
  #bytes = new Float64Array(1)
  updates = 0
  lost = 0

  constructor(path) {
    this.#file = openSync(path, 'r+')
  }

  read() {
    readSync(this.#file, this.#bytes, 0, SIZE, 0)
    return this.#bytes[0]
  }

  write(value) {
    this.updates++
    this.#bytes[0] = value
    writeSync(this.#file, this.#bytes, 0, SIZE, 0)
  }

  close() {
    closeSync(this.#file)
  }

  static create(path) {
    writeFileSync(path, new Uint8Array(SIZE))
  }

  static valueOf(path) {
    const witness = new FileWitness(path)
    try {
      return witness.read()
    } finally {
      witness.close()
    }
  }
}
