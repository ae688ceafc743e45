import { readFileSync } from 'node:fs'
import type { Store } from '../../core/contract.ts'
import { startServer } from '../../server/index.ts'
import type { RunningServer, ServerOptions } from '../../server/index.ts'
import { storeAt, systemError } from '../connect.ts'
import { showDuration } from '../duration.ts'
import { EXIT, UsageError } from '../exit.ts'
import { Interrupt } from '../interrupt.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import { note, print, printJson } from '../table.ts'

const { store, 'store-file': storeFile, 'token-file': tokenFile } = STORE_OPTIONS

const options = {
  listen: { value: 'WHERE', help: 'host:port or unix:/path; default 127.0.0.1:7420' },
  store: { ...store, help: 'keep the locks there, instead of in the server itself' },
  'store-file': storeFile,
  'token-file': tokenFile,
  state: {
    value: 'FILE',
    help: 'where to remember what was promised; "none": nowhere. Default in your state folder',
  },
  'tls-cert': { value: 'FILE', help: 'certificate, PEM' },
  'tls-key': { value: 'FILE', help: 'its key, PEM' },
  'tokens-file': { value: 'FILE', help: 'who may do what: lines of name, sha256:HASH, rights, prefixes' },
  hosts: { value: 'A,B', help: 'host names by which the server may be called, besides its own' },
  origins: { value: 'A,B', help: 'web origins that may call; default none' },
  insecure: { help: 'listen beyond this machine without TLS or tokens' },
  audit: { value: 'FILE', help: 'append one line of JSON for every change' },
  'audit-required': { help: 'refuse what cannot be written to the audit log' },
  json: { help: 'say where it listens as JSON' },
} as const

const serve: Command = command({
  spec: {
    name: 'serve',
    usage: '[options]',
    summary: 'Starts a lock server',
    details:
      'Programs in any language take locks over HTTP; holdfast itself by holdfast://host:port. With --store it keeps\n' +
      'nothing itself, and may run several times over. HOLDFAST_URL is not looked at: it is the address of clients.',
    options,
    words: [0, 0],
    examples: [
      'holdfast serve',
      'holdfast serve --listen unix:/run/holdfast.sock',
      'holdfast serve --store redis://localhost',
      'holdfast serve --listen 0.0.0.0:7420 --tls-cert cert.pem --tls-key key.pem --tokens-file tokens --audit audit.log',
    ],
  },

  async run({ options: given }) {
    const { 'tls-cert': cert, 'tls-key': key, 'tokens-file': tokensFile, listen, state, audit } = given
    if ((cert === undefined) !== (key === undefined))
      throw new UsageError('--tls-cert and --tls-key go together.')
    refuseMistaken(given)
    const interrupt = new Interrupt({ impatient: true })
    const behind =
      given.store === undefined && given['store-file'] === undefined ? undefined : storeAddress(given)
    const storeBehind = behind === undefined ? undefined : await storeAt(behind)
    const wish: ServerOptions = {
      ...(listen === undefined ? {} : { listen }),
      ...(storeBehind === undefined ? {} : { store: storeBehind }),
      ...(state === undefined ? {} : { state: state === 'none' ? null : state }),
      ...(cert === undefined || key === undefined
        ? {}
        : { tls: { cert: pem('--tls-cert', cert), key: pem('--tls-key', key) } }),
      ...(tokensFile === undefined ? {} : { tokensFile }),
      ...(given.hosts === undefined ? {} : { hosts: given.hosts.split(',') }),
      ...(given.origins === undefined ? {} : { origins: given.origins.split(',') }),
      ...(given.insecure === true ? { insecure: true } : {}),
      ...(audit === undefined ? {} : { audit }),
      ...(given['audit-required'] === true ? { auditRequired: true } : {}),
      log: ({ at, level, message, request }) =>
        note(`${at} ${level} ${message}${request === undefined ? '' : ` (request ${request})`}`),
    }
    try {
      const server = await startServer(wish)
      tellWhere(server, given.json === true)
      await interrupt.arrival()
      note('stopping; leases stay')
      await server.close()
      return EXIT.ok
    } finally {
      await closed(storeBehind)
      interrupt.stop()
    }
  },
})

export default serve

/** Options that would do nothing here, and of which somebody expects a lot. */
function refuseMistaken(given: {
  readonly store?: string
  readonly 'store-file'?: string
  readonly 'token-file'?: string
  readonly audit?: string
  readonly 'audit-required'?: true
}): void {
  if (given['token-file'] !== undefined && given.store === undefined && given['store-file'] === undefined) {
    throw new UsageError(
      '--token-file is the token for a lock server behind this one (--store). Who may use this one is said by --tokens-file.',
    )
  }
  if (given['audit-required'] === true && given.audit === undefined)
    throw new UsageError('--audit-required needs --audit FILE.')
}

const CLOSE_MS = 2000

/** A store that does not answer must not keep a server that was told to stop. */
async function closed(store: Store | undefined): Promise<void> {
  const closing = Promise.resolve(store?.close()).catch(() => undefined)
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))
  await Promise.race([closing, enough])
  clearTimeout(timer)
}

function tellWhere({ url, http, startsIn }: RunningServer, json: boolean): void {
  if (json) return printJson({ url, http, pid: process.pid, startsIn })
  print(`Listening at ${url}${http === null ? '' : ` (${http}/v1)`}`)
  if (startsIn > 0)
    print(`Locks are granted in ${showDuration(startsIn)}, when the leases of the former run have ended.`)
}

function pem(option: string, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    throw systemError(`${option} cannot be read`, error)
  }
}
