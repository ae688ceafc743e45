import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const ALGORITHM = 'aes-256-gcm'
const NONCE = 12
const TAG = 16
/** All cursors are as long as this, or a multiple: their length must not tell that of a name. */
const BLOCK = 1536

/** Where a list goes on. Sealed: a store's cursor is nobody's business, and nobody may make one up. */
export class Cursors {
  private readonly key = randomBytes(32)

  seal(cursor: readonly [string, string]): string {
    const bytes = Buffer.from(JSON.stringify(cursor))
    const padded = Buffer.alloc(Math.ceil(bytes.length / BLOCK) * BLOCK, ' ')
    bytes.copy(padded)
    const nonce = randomBytes(NONCE)
    const cipher = createCipheriv(ALGORITHM, this.key, nonce)
    const text = Buffer.concat([cipher.update(padded), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url')
  }

  /** Null for what this server did not seal. */
  open(sealed: string): readonly [string, string] | null {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.length < NONCE + TAG) return null
    const decipher = createDecipheriv(ALGORITHM, this.key, bytes.subarray(0, NONCE), { authTagLength: TAG })
    decipher.setAuthTag(bytes.subarray(NONCE, NONCE + TAG))
    try {
      const text = decipher.update(bytes.subarray(NONCE + TAG), undefined, 'utf8') + decipher.final('utf8')
      return JSON.parse(text) as [string, string]
    } catch {
      return null
    }
  }
}
