import { readFileSync, statSync } from 'node:fs'
import { hasSecret, redact } from '../core/redact.ts'
import { UsageError } from './exit.ts'

/** Where a command finds its store. Nothing secret may be an argument: every user of a machine can read those. */
export const STORE_OPTIONS = {
  store: { value: 'URL', help: 'the store, if its URL holds no password; default $HOLDFAST_URL' },
  'store-file': { value: 'FILE', help: 'a file with the URL, readable by its owner alone' },
  'token-file': {
    value: 'FILE',
    help: 'a file with the token for a lock server; default $HOLDFAST_TOKEN_FILE',
  },
  'ca-file': {
    value: 'FILE',
    help: 'certificates to trust for a lock server, PEM; default $HOLDFAST_CA_FILE',
  },
} as const

export interface StoreGiven {
  readonly store?: string
  readonly 'store-file'?: string
  readonly 'token-file'?: string
  readonly 'ca-file'?: string
}

export interface StoreAddress {
  readonly url: string
  /** For people. */
  readonly shown: string
  readonly token?: string
  /** Certificates to trust, PEM. */
  readonly ca?: string
}

/** `word`: a URL that was given as a word of its own, as in `holdfast doctor URL`. */
export function storeAddress(given: StoreGiven, word?: string): StoreAddress {
  const url = urlOf(given, word)
  const tokenFile = given['token-file'] ?? variable('HOLDFAST_TOKEN_FILE')
  const token = tokenFile === undefined ? undefined : readSecret('--token-file', tokenFile)
  const caFile = given['ca-file'] ?? variable('HOLDFAST_CA_FILE')
  const ca = caFile === undefined ? undefined : readCertificates(caFile)
  return {
    url,
    shown: redact(url),
    ...(token === undefined ? {} : { token }),
    ...(ca === undefined ? {} : { ca }),
  }
}

function urlOf(given: StoreGiven, word: string | undefined): string {
  const argument = word ?? given.store
  if (argument !== undefined) {
    if (hasSecret(argument)) {
      throw new UsageError(
        `The URL ${redact(argument)} holds a password, and every user of this machine can read a command's ` +
          'arguments. Put it into HOLDFAST_URL, or into a file of mode 600 and say --store-file FILE.',
      )
    }
    return argument
  }
  const file = given['store-file']
  if (file !== undefined) return readSecret('--store-file', file)
  const fromEnvironment = variable('HOLDFAST_URL')
  if (fromEnvironment !== undefined) return fromEnvironment
  throw new UsageError(
    `Which store? Set HOLDFAST_URL, or say --store URL. For example:
  holdfast://127.0.0.1:7420   a lock server; "holdfast serve" starts one, nothing else is needed
  redis://localhost           a Redis you have already
A URL with a password belongs into HOLDFAST_URL or a file (--store-file), never into an argument.`,
  )
}

/** One that is empty is not set. */
function variable(name: string): string | undefined {
  const value = process.env[name]
  return value === '' ? undefined : value
}

function readCertificates(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--ca-file ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
}

/** A secret that others can read is none: better to say so than to use it. */
function readSecret(option: string, file: string): string {
  let text: string
  try {
    const { mode, uid } = statSync(file)
    const me = process.getuid?.()
    if (me !== undefined && uid !== me && uid !== 0) {
      throw new UsageError(`${option} ${file} belongs to another user (${uid}).`)
    }
    if ((mode & 0o077) !== 0 && process.platform !== 'win32') {
      throw new UsageError(`${option} ${file} can be read by others; say: chmod 600 ${file}`)
    }
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`${option} ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
  if (text === '') throw new UsageError(`${option} ${file} is empty.`)
  return text
}

/** The environment for a command of the user's: what opens the store stays with holdfast. */
export function scrubbed(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { HOLDFAST_URL: url, HOLDFAST_TOKEN_FILE: _, ...rest } = environment
  // Without a secret it may stay, so that a command can take another lock in turn.
  return url === undefined || hasSecret(url) ? rest : { ...rest, HOLDFAST_URL: url }
}
