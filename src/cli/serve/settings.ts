import { readFileSync } from 'node:fs'
import type { ServerOptions } from '../../server/index.ts'
import { UsageError } from '../exit.ts'
import type { StoreGiven } from '../store-option.ts'
import { ConfigError, readConfig } from './config.ts'
import type { Config } from './config.ts'
import { LOG_FORMATS, LOG_LEVELS } from './log.ts'
import type { LogSettings } from './log.ts'

/** What the command line of `serve` says. */
export interface ServeGiven extends StoreGiven {
  readonly config?: string
  readonly listen?: string
  readonly state?: string
  readonly 'tls-cert'?: string
  readonly 'tls-key'?: string
  readonly 'tokens-file'?: string
  readonly hosts?: string
  readonly origins?: string
  readonly insecure?: true
  readonly audit?: string
  readonly 'audit-required'?: true
  readonly log?: string
  readonly 'log-level'?: string
  readonly 'log-format'?: string
}

/** A file, and who named it: a key of the config file or an option. */
export interface NamedFile {
  readonly path: string
  readonly key: string
}

export interface Settings {
  readonly config: string | undefined
  /** What a setting is called where it was given: an option, or a key of the file. */
  readonly keyOf: (option: keyof ServeGiven, key: string) => string
  /** For `startServer`, without what has to be opened or read first. */
  readonly server: Omit<ServerOptions, 'store' | 'tls' | 'log'>
  /** Where the locks are, if not in the server itself. */
  readonly store: StoreGiven | undefined
  readonly tls: { readonly cert: NamedFile; readonly key: NamedFile } | undefined
  readonly log: LogSettings
}

/** The command line over the file over the defaults. */
export function settingsOf(given: ServeGiven): Settings {
  const config = given.config === undefined ? {} : readConfig(given.config)
  const tokensFile = given['tokens-file'] ?? config.tokensFile
  const listen = given.listen ?? config.listen
  const state = given.state === undefined ? config.state : given.state === 'none' ? null : given.state
  const audit = given.audit ?? config.audit?.file
  const required = given['audit-required'] ?? config.audit?.required ?? false
  if (required && audit === undefined) {
    throw given['audit-required'] === true
      ? new UsageError('--audit-required needs --audit FILE.')
      : new ConfigError(given.config, [{ key: 'audit.required', problem: 'needs audit.file' }])
  }
  const hosts = listed(given.hosts) ?? config.hosts
  const origins = listed(given.origins) ?? config.origins
  return {
    config: given.config,
    keyOf: (option, key) => (given[option] === undefined && given.config !== undefined ? key : `--${option}`),
    server: {
      ...(listen === undefined ? {} : { listen }),
      ...(state === undefined ? {} : { state }),
      ...(tokensFile === undefined ? {} : { tokensFile }),
      ...(hosts === undefined ? {} : { hosts }),
      ...(origins === undefined ? {} : { origins }),
      ...(given.insecure === true || config.insecure === true ? { insecure: true } : {}),
      ...(audit === undefined ? {} : { audit }),
      ...(required ? { auditRequired: true } : {}),
      ...(config.limits === undefined ? {} : { limits: config.limits }),
    },
    store: storeOf(given, config),
    tls: tlsOf(given, config),
    log: logOf(given, config),
  }
}

const listed = (text: string | undefined): readonly string[] | undefined =>
  text?.split(',').map((one) => one.trim())

function storeOf(given: ServeGiven, { store = {} }: Config): StoreGiven | undefined {
  const { store: url, 'store-file': urlFile, 'token-file': tokenFile, 'ca-file': caFile } = given
  // Of two stores the command line's: a half of each would be neither.
  if (url !== undefined || urlFile !== undefined) return given
  const more = { 'token-file': tokenFile ?? store.tokenFile, 'ca-file': caFile ?? store.caFile }
  const credentials = Object.fromEntries(Object.entries(more).filter(([, file]) => file !== undefined))
  if (store.url !== undefined && store.urlFile !== undefined)
    throw new ConfigError(given.config, [{ key: 'store', problem: 'has both url and urlFile' }])
  if (store.url !== undefined) return { store: store.url, ...credentials }
  if (store.urlFile !== undefined) return { 'store-file': store.urlFile, ...credentials }
  if (store.tokenFile !== undefined || store.caFile !== undefined)
    throw new ConfigError(given.config, [{ key: 'store', problem: 'needs url or urlFile' }])
  // It would do nothing here, and somebody expects a lot of it.
  if (tokenFile !== undefined) {
    throw new UsageError(
      '--token-file is the token for a lock server behind this one (--store). Who may use this one is said by --tokens-file.',
    )
  }
  if (caFile !== undefined) throw new UsageError('--ca-file is for a lock server behind this one (--store).')
  return undefined
}

function tlsOf(given: ServeGiven, { tls = {} }: Config): Settings['tls'] {
  const { 'tls-cert': cert, 'tls-key': key } = given
  if ((cert === undefined) !== (key === undefined))
    throw new UsageError('--tls-cert and --tls-key go together.')
  if (cert !== undefined && key !== undefined)
    return { cert: { path: cert, key: '--tls-cert' }, key: { path: key, key: '--tls-key' } }
  if ((tls.cert === undefined) !== (tls.key === undefined))
    throw new ConfigError(given.config, [{ key: 'tls', problem: 'needs both cert and key' }])
  if (tls.cert === undefined || tls.key === undefined) return undefined
  return { cert: { path: tls.cert, key: 'tls.cert' }, key: { path: tls.key, key: 'tls.key' } }
}

function logOf(given: ServeGiven, { log = {} }: Config): LogSettings {
  const level = choice('--log-level', given['log-level'], LOG_LEVELS) ?? log.level
  const format = choice('--log-format', given['log-format'], LOG_FORMATS) ?? log.format
  const file = given.log ?? log.file
  return {
    ...(file === undefined ? {} : { file }),
    ...(level === undefined ? {} : { level }),
    ...(format === undefined ? {} : { format }),
  }
}

function choice<T extends string>(
  option: string,
  value: string | undefined,
  among: readonly T[],
): T | undefined {
  const found = among.find((one) => one === value)
  if (value !== undefined && found === undefined)
    throw new UsageError(`${option} is one of ${among.join(', ')}; got "${value}".`)
  return found
}

/** Read at the start, and again when the server is told to. */
export function readTls({ tls, config }: Pick<Settings, 'tls' | 'config'>): ServerOptions['tls'] {
  if (tls === undefined) return undefined
  return { cert: pem(tls.cert, config), key: pem(tls.key, config) }
}

function pem({ path, key }: NamedFile, config: string | undefined): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'no reason given'
    throw new ConfigError(config, [{ key, problem: `${path} cannot be read: ${reason}` }])
  }
}
