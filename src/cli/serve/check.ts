import { X509Certificate } from 'node:crypto'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { createSecureContext } from 'node:tls'
import { checkHosts, checkOrigins } from '../../server/gate.ts'
import { HorizonFile } from '../../server/embedded/horizon-file.ts'
import { notAPair } from '../../server/http-server.ts'
import { resolveLimits } from '../../server/limits.ts'
import { assertSafe, DEFAULT_LISTEN, parseListen } from '../../server/listen.ts'
import type { ListenAt } from '../../server/listen.ts'
import { behindLinks, defaultStatePath } from '../../server/state-path.ts'
import { readTokens } from '../../server/tokens.ts'
import { openerOf } from '../../open.ts'
import { UsageError } from '../exit.ts'
import { storeAddress } from '../store-option.ts'
import type { StoreGiven } from '../store-option.ts'
import { ConfigError } from './config.ts'
import type { ConfigProblem } from './config.ts'
import { readTls } from './settings.ts'
import type { Settings } from './settings.ts'

/** What was looked at and found good, in words. */
export type Findings = readonly string[]

/** Before every start: what the files say, so that a mistake is told with the file and the key that hold it. */
export function assertUsable(settings: Settings): void {
  const trial = new Trial(settings)
  trial.content()
  trial.finish()
}

/** For `--check`: also whether it could write what it has to write. Nothing is changed, and nothing listens. */
export function checked(settings: Settings): Findings {
  const trial = new Trial(settings)
  trial.content()
  trial.places()
  return trial.finish()
}

/** For messages. A store that ends with the server is none: the next run would grant what is still held. */
function storeBehind(store: StoreGiven): string {
  const { url, shown } = storeAddress(store)
  if (/^memory:/i.test(url))
    throw new UsageError(
      "memory: would forget every lease at a restart. Leave the store out: the server's own memory goes on after it.",
    )
  openerOf(url)
  return shown
}

class Trial {
  private readonly settings: Settings
  private readonly problems: ConfigProblem[] = []
  private readonly findings: string[] = []

  constructor(settings: Settings) {
    this.settings = settings
  }

  finish(): Findings {
    if (this.problems.length > 0) throw new ConfigError(this.settings.config, this.problems)
    return this.findings
  }

  content(): void {
    const { server, tls, store, keyOf } = this.settings
    const { tokensFile, insecure = false } = server
    const listenKey = keyOf('listen', 'listen')
    const at = this.attempt(listenKey, () => parseListen(server.listen ?? DEFAULT_LISTEN))
    if (at !== undefined) {
      this.attempt(listenKey, () =>
        assertSafe(at, { tls: tls !== undefined, tokens: tokensFile !== undefined, insecure }),
      )
      this.findings.push(`listens at ${server.listen ?? DEFAULT_LISTEN}`)
    }
    this.attempt(keyOf('hosts', 'hosts'), () => checkHosts(server.hosts ?? []))
    this.attempt(keyOf('origins', 'origins'), () => checkOrigins(server.origins ?? []))
    this.attempt('limits', () => resolveLimits(server.limits))
    if (tls !== undefined) this.attempt(tls.cert.key, () => this.findings.push(this.certificate()))
    if (tokensFile !== undefined) {
      this.attempt(keyOf('tokens-file', 'tokensFile'), () =>
        this.findings.push(`tokens in ${tokensFile}: ${readTokens(tokensFile).size}`),
      )
    }
    if (store !== undefined) {
      this.attempt(keyOf('store', 'store'), () =>
        this.findings.push(`keeps the locks at ${storeBehind(store)}; holdfast doctor tries that`),
      )
    }
  }

  places(): void {
    const { server, store, log, keyOf } = this.settings
    const { audit } = server
    if (typeof audit === 'string') this.writable('audit log', keyOf('audit', 'audit.file'), audit)
    if (log.file !== undefined) this.writable('log', keyOf('log', 'log.file'), log.file)
    const state = store === undefined ? this.statePath() : null
    if (state !== null) this.state(keyOf('state', 'state'), behindLinks(state))
    else if (store === undefined) this.findings.push('no state file: a restart forgets leases')
  }

  private statePath(): string | null {
    const { state, listen = DEFAULT_LISTEN } = this.settings.server
    if (state !== undefined) return state
    const at = quietly(() => parseListen(listen))
    return at === undefined ? null : defaultStatePath(at)
  }

  private certificate(): string {
    const pair = readTls(this.settings)
    if (pair === undefined) return ''
    try {
      createSecureContext({ cert: pair.cert, key: pair.key })
    } catch (cause) {
      throw notAPair(cause)
    }
    const { validTo, subject } = new X509Certificate(pair.cert)
    if (Date.parse(validTo) < Date.now()) throw new Error(`the certificate ran out on ${validTo}`)
    return `certificate of ${subject.replaceAll('\n', ', ')} until ${validTo}`
  }

  /** It is read, and each write puts another file in its place: its folder has to be writable, or else the one above that there is. */
  private state(key: string, path: string): void {
    this.attempt(key, () => {
      new HorizonFile(path, '').read()
      let folder = dirname(path)
      while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder)
      assertWritable(folder)
      this.findings.push(`state in ${path}`)
    })
  }

  /** Without making it: the file, or else the nearest folder above it that there is. */
  private writable(what: string, key: string, path: string): void {
    this.attempt(key, () => {
      if (existsSync(path) && statSync(path).isDirectory()) throw new Error(`${path} is a folder`)
      let place = path
      while (!existsSync(place) && dirname(place) !== place) place = dirname(place)
      assertWritable(place)
      if (place !== path && place !== dirname(path)) throw new Error(`there is no folder ${dirname(path)}`)
      this.findings.push(`${what} in ${path}`)
    })
  }

  private attempt<T>(key: string, work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      if (error instanceof ConfigError) this.problems.push(...error.problems)
      else this.problems.push({ key, problem: wordsOf(error as NodeJS.ErrnoException) })
      return undefined
    }
  }
}

function assertWritable(place: string): void {
  try {
    accessSync(place, constants.W_OK)
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'no reason given'
    throw new Error(`${place} cannot be written: ${reason}`, { cause: error })
  }
}

function wordsOf({ code, path, message }: NodeJS.ErrnoException): string {
  return path === undefined || code === undefined ? message : `${path} cannot be read: ${code}`
}

function quietly(work: () => ListenAt): ListenAt | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
