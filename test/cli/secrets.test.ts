import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

import { endAll, holdfast, lockServer, run, sh, tempFolder } from './cli.ts'

const secret = randomBytes(24).toString('base64url')
const folder = tempFolder()
const file = (name: string, text: string, mode = 0o600): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

let server: Awaited<ReturnType<typeof lockServer>>
let withSecret = ''
beforeAll(async () => {
  const hash = createHash('sha256').update(secret).digest('hex')
  server = await lockServer('--tokens-file', file('tokens', `me sha256:${hash} acquire,read *\n`))
  withSecret = server.url.replace('//', `//:${secret}@`)
})
afterAll(() => server.kill('SIGKILL'))
afterEach(endAll)

/** Where a text is in what the system shows of processes: their arguments, and what they were started with. */
function shownIn(text: string, except: readonly number[]): readonly string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .flatMap((pid) =>
      ['cmdline', 'environ'].flatMap((what) => {
        // The environment of the command itself is where the user put it, and nobody else can read it there.
        if (what === 'environ' && except.includes(Number(pid))) return []
        try {
          const shown = readFileSync(`/proc/${pid}/${what}`, 'utf8')
          return shown.includes(text) ? [`${what} of ${readFileSync(`/proc/${pid}/cmdline`, 'utf8')}`] : []
        } catch {
          return []
        }
      }),
    )
}

describe.skipIf(process.platform !== 'linux')('a secret', () => {
  it('is in no process that holdfast run starts, and in nobody’s arguments', async () => {
    const running = holdfast(['run', 'a', '-v', ...sh('env; sleep 60')], { url: withSecret })
    await running.says('HOLDFAST_TOKEN=')
    expect(shownIn(secret, [running.pid])).toEqual([])
    expect(running.stdout + running.stderr).not.toContain(secret)
  })

  it('is in no process that holdfast acquire leaves behind', async () => {
    const env = { XDG_RUNTIME_DIR: folder }
    const { code, stdout } = await run(['acquire', 'b', '--parent', String(process.pid)], {
      url: withSecret,
      env,
    })
    expect(code).toBe(0)
    expect(shownIn(secret, [])).toEqual([])
    expect(stdout).toContain(':***@')
    expect((await run(['release', 'b'], { env })).code).toBe(0)
  })

  it('is refused as an argument, without being repeated', async () => {
    for (const args of [
      ['run', 'a', '--store', withSecret, '--', 'true'],
      ['doctor', withSecret],
      ['conformance', withSecret],
      ['ls', '--store', withSecret],
    ]) {
      const { code, stdout, stderr } = await run(args)
      expect(code).toBe(64)
      expect(stderr).toContain('HOLDFAST_URL')
      expect(stdout + stderr).not.toContain(secret)
    }
  })

  it('is not in what is said about a store that cannot be reached or does not let one in', async () => {
    const urls = [
      `holdfast://:${secret}@127.0.0.1:1`,
      `redis://:${secret}@127.0.0.1:1`,
      `nosql://:${secret}@host`,
      server.url.replace('//', '//:wrong-token-wrong-token@'),
    ]
    for (const url of urls) {
      const { code, stdout, stderr } = await run(['run', 'a', '--', 'true'], { url })
      expect([64, 69, 77]).toContain(code)
      expect(stdout + stderr).not.toMatch(new RegExp(`${secret}|wrong-token`))
    }
  })

  it('may come from a file that nobody else can read', async () => {
    const tokenFile = file('token', `${secret}\n`)
    expect((await run(['run', 'c', '--token-file', tokenFile, '--', 'true'], { url: server.url })).code).toBe(
      0,
    )
    const env = { HOLDFAST_TOKEN_FILE: tokenFile }
    const seen = await run(['run', 'c', '--', 'env'], { url: server.url, env })
    expect(seen.stdout).not.toContain('HOLDFAST_TOKEN_FILE')
    expect(seen.code).toBe(0)
    expect((await run(['run', 'c', '--store-file', file('url', withSecret), '--', 'true'])).code).toBe(0)
  })

  it.each([0o644, 0o640, 0o604])('is not taken from a file of mode %o', async (mode) => {
    for (const option of ['--token-file', '--store-file']) {
      const { code, stderr } = await run(['ls', option, file('open', withSecret, mode)], { url: server.url })
      expect(stderr).toContain('chmod 600')
      expect(code).toBe(64)
    }
  })
})
