import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { nearest } from '../../core/arguments.ts'
import { hasSecret } from '../../core/redact.ts'
import { DEFAULT_LIMITS } from '../../server/index.ts'
import type { Limits } from '../../server/index.ts'
import { checkLimit } from '../../server/limits.ts'
import { UsageError } from '../exit.ts'
import { LOG_FORMATS, LOG_LEVELS } from './log.ts'
import type { LogFormat } from './log.ts'

/** What a file for `serve --config` may say. Names of files in it count from the file's own folder. */
export interface Config {
  readonly listen?: string
  readonly hosts?: readonly string[]
  readonly origins?: readonly string[]
  readonly insecure?: boolean
  readonly state?: string | null
  readonly tokensFile?: string
  readonly store?: {
    readonly url?: string
    readonly urlFile?: string
    readonly tokenFile?: string
    readonly caFile?: string
  }
  readonly tls?: { readonly cert?: string; readonly key?: string }
  readonly audit?: { readonly file?: string; readonly required?: boolean }
  readonly log?: {
    readonly file?: string
    readonly level?: (typeof LOG_LEVELS)[number]
    readonly format?: LogFormat
  }
  readonly limits?: Partial<Limits>
}

/** One thing that is wrong, and where. */
export interface ConfigProblem {
  /** A key of the file (`tls.cert`) or an option (`--tls-cert`); empty where it is the file itself. */
  readonly key: string
  readonly problem: string
}

/** Everything that is wrong at once: who mends one mistake at a time restarts as often. No value of the file is shown. */
export class ConfigError extends UsageError {
  override name = 'ConfigError'
  readonly file: string | undefined
  readonly problems: readonly ConfigProblem[]

  constructor(file: string | undefined, problems: readonly ConfigProblem[]) {
    const where = (key: string): string =>
      [key.startsWith('--') ? undefined : file, key].filter(Boolean).join(': ')
    super(problems.map(({ key, problem }) => `${where(key)}: ${problem}`).join('\n'))
    this.file = file
    this.problems = problems
  }
}

interface Field {
  readonly what: string
  /** What it stands for; undefined when it is not that. */
  readonly read: (value: unknown, folder: string) => unknown
}
interface Group {
  readonly [key: string]: Field | Group
}

const text: Field = {
  what: 'text',
  read: (value) => (typeof value === 'string' && value !== '' ? value : undefined),
}
const file: Field = {
  what: "a file's name",
  read: (value, folder) => (typeof value === 'string' && value !== '' ? resolve(folder, value) : undefined),
}
const flag: Field = {
  what: 'true or false',
  read: (value) => (typeof value === 'boolean' ? value : undefined),
}
const texts: Field = {
  what: 'a list of texts',
  read: (value) =>
    Array.isArray(value) && value.every((one) => typeof one === 'string' && one !== '') ? value : undefined,
}
const oneOf = (choices: readonly string[]): Field => ({
  what: `one of ${choices.map((choice) => `"${choice}"`).join(', ')}`,
  read: (value) => choices.find((choice) => choice === value),
})
const limit = (name: string): Field => ({
  what: 'a whole number that this limit allows',
  read: (value) => {
    checkLimit(name, value)
    return value
  },
})

const SHAPE: Group = {
  listen: text,
  hosts: texts,
  origins: texts,
  insecure: flag,
  state: {
    what: 'the name of a file, or null for none',
    read: (value, folder) => (value === null ? null : file.read(value, folder)),
  },
  tokensFile: file,
  store: {
    url: {
      what: 'a URL without a password; one with a password goes into a file (store.urlFile)',
      read: (value) => (typeof value === 'string' && !hasSecret(value) ? value : undefined),
    },
    urlFile: file,
    tokenFile: file,
    caFile: file,
  },
  tls: { cert: file, key: file },
  audit: { file, required: flag },
  log: { file, level: oneOf(LOG_LEVELS), format: oneOf(LOG_FORMATS) },
  limits: Object.fromEntries(Object.keys(DEFAULT_LIMITS).map((name) => [name, limit(name)])),
}

const isField = (shape: Field | Group): shape is Field => typeof shape['read'] === 'function'

/** Reads a file, or says everything that is wrong with it. */
export function readConfig(path: string): Config {
  const value = parsed(path)
  const problems: ConfigProblem[] = []
  const config = read(SHAPE, value, { folder: dirname(resolve(path)), at: '', problems })
  if (problems.length > 0) throw new ConfigError(path, problems)
  return config as Config
}

interface Place {
  readonly folder: string
  readonly at: string
  readonly problems: ConfigProblem[]
}

function read(shape: Group, value: unknown, { folder, at, problems }: Place): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    problems.push({ key: at, problem: `must be an object, { … }; got ${kindOf(value)}` })
    return found
  }
  for (const [name, one] of Object.entries(value)) {
    const key = at === '' ? name : `${at}.${name}`
    const known = Object.hasOwn(shape, name) ? shape[name] : undefined
    if (known === undefined) problems.push({ key, problem: unknownKey(name, Object.keys(shape)) })
    else if (isField(known)) found[name] = readField(known, one, { folder, at: key, problems })
    else found[name] = read(known, one, { folder, at: key, problems })
  }
  return found
}

function readField(field: Field, value: unknown, { folder, at, problems }: Place): unknown {
  try {
    const found = field.read(value, folder)
    if (found === undefined)
      problems.push({ key: at, problem: `must be ${field.what}; got ${kindOf(value)}` })
    return found
  } catch (error) {
    // A limit's own words begin with its name, which stands before them already.
    problems.push({ key: at, problem: (error as Error).message.replace(`${at} `, '') })
    return undefined
  }
}

function unknownKey(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  return near === undefined ? `is none of ${known.join(', ')}` : `is not known. Did you mean "${near}"?`
}

/** Not the value itself: somebody may have put a secret there. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object'
    ? 'an object'
    : typeof value === 'string'
      ? 'another text'
      : `a ${typeof value}`
}

function parsed(path: string): unknown {
  let content: string
  try {
    content = readFileSync(path, 'utf8')
    if (process.platform !== 'win32' && (statSync(path).mode & 0o022) !== 0) {
      const problem = `can be changed by others, and says who may do what. Run: chmod go-w ${path}`
      throw new ConfigError(path, [{ key: '', problem }])
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const problem = `cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'no reason given'}`
    throw new ConfigError(path, [{ key: '', problem }])
  }
  try {
    return JSON.parse(content) as unknown
  } catch (error) {
    throw new ConfigError(path, [{ key: '', problem: `is not JSON${placeOf(error, content)}` }])
  }
}

/** The parser's own words would show a piece of the file. */
function placeOf(error: unknown, content: string): string {
  const position = /position (\d+)/.exec((error as Error).message)?.[1]
  if (position === undefined) return ''
  const before = content.slice(0, Number(position)).split('\n')
  return `: see line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}
