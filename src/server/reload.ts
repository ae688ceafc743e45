import type { Server as HttpServer } from 'node:http'
import { Server as HttpsServer } from 'node:https'

import type { Audit } from './audit.ts'
import { notAPair } from './http-server.ts'
import type { ReloadOptions, Reloaded } from './options.ts'
import type { Problems } from './problems.ts'
import { readTokens } from './tokens.ts'
import type { Tokens } from './tokens.ts'

export interface ReloadParts {
  readonly server: HttpServer | HttpsServer
  readonly tokens: Tokens | null
  readonly tokensFile: string | undefined
  readonly audit: Audit
  readonly problems: Problems
}

type Done = (words: string) => void

/**
 * Takes up what has changed in files while the server runs. Each part by itself: a mistake in the tokens must not keep an old
 * certificate in use until it has run out. What cannot be used changes nothing.
 */
export function reload(
  { server, tokens, tokensFile, audit, problems }: ReloadParts,
  { tls }: ReloadOptions,
): readonly Reloaded[] {
  const results: Reloaded[] = []
  const attempt = (part: Reloaded['part'], work: (done: Done) => void): void => {
    try {
      work((words) => {
        results.push({ part, error: null })
        problems.say('info', 'reload', words, { what: part })
      })
    } catch (thrown) {
      const error = thrown as Error
      results.push({ part, error })
      problems.say('error', 'reload', `${KEPT[part]}: ${error.message}`, { what: part })
    }
  }
  attempt('tokens', (done) => {
    if (tokens === null || tokensFile === undefined) return
    tokens.replace(readTokens(tokensFile))
    done(`The tokens were read again: ${tokens.size} of them.`)
  })
  attempt('certificate', (done) => {
    if (tls === undefined || !(server instanceof HttpsServer)) return
    try {
      server.setSecureContext({ cert: tls.cert, key: tls.key })
    } catch (cause) {
      throw notAPair(cause)
    }
    done('The certificate was read again. Connections that are open go on with the old one.')
  })
  attempt('audit', (done) => {
    const failure = audit.reopen()
    if (failure === undefined) return
    if (failure !== null) throw failure
    done('The audit log was opened again.')
  })
  return results
}

const KEPT: Readonly<Record<Reloaded['part'], string>> = {
  tokens: 'The old tokens stay, because the new ones cannot be used',
  certificate: 'The old certificate stays, because the new one cannot be used',
  audit: 'The old audit log goes on, because a new one cannot be opened',
}
