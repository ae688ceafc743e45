import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { hashToken, parseTokens } from '../../server/index.ts'
import { systemError } from '../connect.ts'
import { EXIT, UsageError } from '../exit.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { print } from '../table.ts'

const options = {
  rights: { value: 'A,B', help: 'acquire, read, force-release, admin; default acquire,read' },
  out: { value: 'FILE', help: 'a new file for the token, which is shown nowhere else' },
} as const

const BYTES = 32

const token: Command = command({
  spec: {
    name: 'token',
    usage: 'new NAME PREFIX… --out FILE [options]',
    summary: 'Makes a token for a lock server',
    details:
      'Writes a random token to a file of mode 600, for clients (--token-file), and prints the line for the file of the\n' +
      'server (--tokens-file), from which nobody can make the token. A prefix "*" stands for every name.',
    options,
    words: [3, 100],
    choices: ['new'],
    examples: ['holdfast token new sellers train: seats/ --out sellers.token >> tokens'],
  },

  async run({ options: { rights = 'acquire,read', out }, words: [action = '', name = '', ...prefixes] }) {
    if (action !== 'new') throw new UsageError(`"new" is all that there is; got "${action}".`)
    if (out === undefined) throw new UsageError('Say where the token goes: --out FILE.')
    if (![name, ...prefixes].every((word) => /^[^\s#]+$/.test(word)))
      throw new UsageError('Names and prefixes must not contain spaces or #.')
    const secret = randomBytes(BYTES).toString('base64url')
    const line = [name, hashToken(secret), rights, ...prefixes].join(' ')
    // Before anything is written: a line that the server would refuse helps nobody.
    parseTokens(line)
    try {
      writeFileSync(out, `${secret}\n`, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      throw systemError('The token cannot be written', error)
    }
    print(line)
    return Promise.resolve(EXIT.ok)
  },
})

export default token
