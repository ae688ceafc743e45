import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { describe, expect, it } from 'vitest'

import type { RunningServer } from '../../src/server/index.ts'
import { look, serve, take } from './helpers.ts'

const read = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')
const NAME = 'train:G101'
/** The lease as it stands in the docs. */
const SHOWN = /"lease":"[^"]*…[^"]*"/

interface Ended {
  readonly code: number | null
  readonly out: string
}

/** Runs it as a user would who has pasted it, with the address of this server. */
function shell(server: RunningServer, script: string): Promise<Ended> {
  const text = script.replaceAll('http://127.0.0.1:7420', server.http ?? '')
  return new Promise((resolve) => {
    const child = execFile('sh', ['-c', text], (_, out) => resolve({ code: child.exitCode, out }))
  })
}

const [, block = ''] = /## With curl\n\n```\n([^]*?)```/.exec(read('docs/server.md')) ?? []
const [setting = '', ...rest] = block.split('\n\n')
const commands = rest.flatMap((lines) => lines.split('\n')).filter((line) => line.startsWith('curl '))
const commandFor = (route: string): string => {
  const [command = ''] = commands.filter((one) => one.includes(`$api/${route}`))
  expect(command).not.toBe('')
  return command
}

describe.skipIf(spawnSync('curl', ['--version']).status !== 0)('the examples with curl', () => {
  const pasted = (server: RunningServer, route: string, lease = ''): Promise<Ended> =>
    shell(server, `${setting}\n${commandFor(route).replace(SHOWN, `"lease":"${lease}"`)}`)

  it('do what they say, one after the other', async () => {
    const server = await serve()
    const { code, out } = await pasted(server, 'acquire ')
    const { lease } = JSON.parse(out) as { lease: string }
    expect([code, (await look(server, NAME)).holders.length]).toEqual([0, 1])
    expect((await pasted(server, 'renew', lease)).code).toBe(0)
    expect(JSON.parse((await pasted(server, 'locks  ')).out)).toEqual({ names: [NAME] })
    expect(JSON.parse((await pasted(server, 'locks/')).out)).toMatchObject({ name: NAME })
    expect((await pasted(server, 'release', lease)).code).toBe(0)
    expect((await look(server, NAME)).holders).toEqual([])
    await take(server, { name: NAME, ttl: 60_000 })
    expect((await pasted(server, 'force-release')).code).toBe(0)
    expect((await look(server, NAME)).holders).toEqual([])
  })

  it('fail when they are refused: a script that is made of them does not go on', async () => {
    const server = await serve()
    await take(server, { name: NAME, ttl: 60_000 })
    const impatient = (text: string): string => text.replace('"wait":10000', '"wait":1')
    const refused = impatient(`set -e\n${setting}\n${commandFor('acquire ')}`)
    expect(await shell(server, `${refused}\necho went on`)).toEqual({
      code: 22,
      out: expect.stringMatching(/LOCK_TIMEOUT(?![^]*went on)/) as unknown,
    })
    const stranger = `${'a'.repeat(22)}.${'b'.repeat(22)}`
    for (const route of ['renew', 'release']) expect((await pasted(server, route, stranger)).code).toBe(22)
    const [, readme = ''] = /```sh\n(curl [^]*?)```/.exec(read('README.md')) ?? []
    expect(await shell(server, impatient(readme))).toMatchObject({ code: 22 })
  })

  it('show events as they happen', async () => {
    const server = await serve()
    const until = '| while read -r line; do case $line in *G101*) exit 0;; esac; done'
    let code: number | null | undefined
    const watching = shell(server, `${setting}\n${commandFor('events').replace(/ {2,}#.*/, '')} ${until}`)
    const told = watching.then((ended) => void (code = ended.code))
    // It may take a while to listen, and hears nothing of what was before.
    while (code === undefined) {
      await take(server, { name: NAME, ttl: 60_000 })
      await pasted(server, 'force-release')
    }
    await told
    expect(code).toBe(0)
  })
})
