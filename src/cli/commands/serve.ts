import type { Store } from '../../core/contract.ts'
import { startServer } from '../../server/index.ts'
import type { RunningServer } from '../../server/index.ts'
import { storeAt } from '../connect.ts'
import { showDuration } from '../duration.ts'
import { EXIT } from '../exit.ts'
import { Interrupt } from '../interrupt.ts'
import { assertUsable, checked } from '../serve/check.ts'
import { onHangUp } from '../serve/hang-up.ts'
import { LOG_FORMATS, LOG_LEVELS, ServeLog } from '../serve/log.ts'
import { readTls, settingsOf } from '../serve/settings.ts'
import type { Settings } from '../serve/settings.ts'
import { command } from '../spec.ts'
import type { Command } from '../spec.ts'
import { storeAddress, STORE_OPTIONS } from '../store-option.ts'
import { print, printJson } from '../table.ts'

const { store, 'store-file': storeFile, 'token-file': tokenFile, 'ca-file': caFile } = STORE_OPTIONS

const options = {
  config: { value: 'FILE', help: 'a file of JSON with all of this; what is said here wins over it' },
  check: { help: 'only say whether it could start so, and what is wrong' },
  listen: { value: 'WHERE', help: 'host:port or unix:/path; default 127.0.0.1:7420' },
  store: { ...store, help: 'keep the locks there, instead of in the server itself' },
  'store-file': storeFile,
  'token-file': tokenFile,
  'ca-file': caFile,
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
  log: { value: 'FILE', help: 'where to write what happens to the server; default stderr' },
  'log-level': { value: 'LEVEL', help: 'the least that is written; default info', choices: LOG_LEVELS },
  'log-format': { value: 'FORMAT', help: 'for people or for programs; default text', choices: LOG_FORMATS },
  json: { help: 'say where it listens as JSON' },
} as const

const serve: Command = command({
  spec: {
    name: 'serve',
    usage: '[options]',
    summary: 'Starts a lock server',
    details:
      'Programs in any language take locks over HTTP; holdfast itself by holdfast://host:port. With --store it keeps\n' +
      'nothing itself, and may run several times over. HOLDFAST_URL is not looked at: it is the address of clients.\n' +
      'SIGHUP reads tokens and certificate again and opens the logs again; SIGTERM stops it.',
    options,
    words: [0, 0],
    examples: [
      'holdfast serve',
      'holdfast serve --listen unix:/run/holdfast.sock',
      'holdfast serve --store redis://localhost',
      'holdfast serve --listen 0.0.0.0:7420 --tls-cert cert.pem --tls-key key.pem --tokens-file tokens --audit audit.log',
      'holdfast serve --config /etc/holdfast/config.json --check',
    ],
  },

  async run({ options: given }) {
    const settings = settingsOf(given)
    if (given.check === true) {
      const findings = checked(settings)
      if (given.json === true) printJson({ ok: true, findings })
      else print(findings.map((one) => `ok: ${one}`).join('\n'))
      return EXIT.ok
    }
    assertUsable(settings)
    return serving(settings, given.json === true)
  },
})

export default serve

async function serving(settings: Settings, json: boolean): Promise<number> {
  const interrupt = new Interrupt({ impatient: true, ending: ['SIGINT', 'SIGTERM', 'SIGQUIT'] })
  const log = new ServeLog(settings.log)
  // Whoever read it is gone: a server that nobody listens to serves on.
  process.stderr.on('error', () => undefined)
  let server: RunningServer | undefined
  // To the end of this process, as for the other signals: whatever comes while it stops must not cut that short.
  onHangUp({
    again: () => {
      if (interrupt.exitCode === undefined) reload(settings, server, log)
    },
    ended: () => {
      if (interrupt.exitCode === undefined) interrupt.came('SIGHUP')
    },
  })
  const storeBehind = settings.store && (await storeAt(storeAddress(settings.store)))
  const tls = readTls(settings)
  try {
    server = await startServer({
      ...settings.server,
      ...(storeBehind === undefined ? {} : { store: storeBehind }),
      ...(tls === undefined ? {} : { tls }),
      log: log.write,
    })
    tellWhere(server, json)
    if (!log.isForPeople) logStart(server, log, interrupt.signal)
    await interrupt.arrival()
    log.say('info', 'stopping', 'stopping; leases stay')
    await server.close()
    log.say('info', 'stopped', 'stopped')
    return EXIT.ok
  } finally {
    await closed(storeBehind)
  }
}

/** Before it listens there is nothing old to be replaced. */
function reload(settings: Settings, server: RunningServer | undefined, log: ServeLog): void {
  log.reopen()
  if (server === undefined) return
  try {
    const tls = readTls(settings)
    server.reload(tls === undefined ? {} : { tls })
  } catch (error) {
    // The rest does not wait for a certificate that cannot be read.
    log.say('error', 'reload', `The old certificate stays: ${(error as Error).message}`, {
      what: 'certificate',
    })
    server.reload()
  }
}

/** Whoever started it has read on stdout where it is; this is for who reads the log. */
function logStart({ url, startsIn, ready }: RunningServer, log: ServeLog, stopping: AbortSignal): void {
  log.say('info', 'start', `listening at ${url}, process ${process.pid}`)
  if (startsIn > 0) log.say('info', 'start', `locks are granted in ${showDuration(startsIn)}`)
  ready.then(
    () => {
      if (!stopping.aborted) log.say('info', 'ready', 'locks are granted')
    },
    () => undefined,
  )
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
