import { describe, expect, it } from 'vitest'

import { ClosedError, HoldfastError, InvalidArgumentError } from '../../src/core/errors.ts'
import { hasSecret, redact } from '../../src/core/redact.ts'
import { open, openStore, SCHEMES } from '../../src/open.ts'

const PLACES: Readonly<Record<string, string>> = {
  sqlite: 'sqlite:/nowhere/locks.db',
  'holdfast+unix': 'holdfast+unix:/nowhere/locks.sock',
  'redis+sentinel': 'redis+sentinel://127.0.0.1:1/primary',
  'rediss+sentinel': 'rediss+sentinel://127.0.0.1:1/primary',
}
/** What a URL says to the store; other tests show that it is heard. Drivers of databases have settings without number. */
const TAKEN: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^(redis|redlock|memcached)/, ['prefix']],
  [/^(mysql|postgres)/, ['table', 'schema', 'no-such-setting']],
  [/^zookeeper/, ['root']],
]

describe('open', () => {
  it('gives locks at the store behind the URL', async () => {
    await using holdfast = await open('memory:')
    expect(holdfast.store.kind).toBe('memory')
    await expect(holdfast.mutex('a').run(() => 'done')).resolves.toBe('done')
  })

  it('closes the store it opened when it is closed, once', async () => {
    const holdfast = await open('memory:')
    let closed = 0
    holdfast.store.close = () => void closed++
    await Promise.all([holdfast.close(), holdfast.close()])
    expect(closed).toBe(1)
    await expect(holdfast.mutex('a').acquire()).rejects.toThrow(ClosedError)
  })

  it('passes options on, and leaves nothing open when they are wrong', async () => {
    await expect(open('memory:', { ttl: -1 })).rejects.toThrow('ttl')
    await using holdfast = await open('memory:', { owner: 'me' })
    const lease = await holdfast.mutex('a').acquire()
    expect((await holdfast.inspect('a')).holders[0]?.owner).toBe('me')
    await lease.release()
  })

  it.each(['no-such://host', 'localhost', ''])('refuses "%s" and lists what it knows', async (url) => {
    const refused = openStore(url)
    await expect(refused).rejects.toThrow(InvalidArgumentError)
    for (const scheme of SCHEMES) await expect(refused).rejects.toThrow(scheme)
  })

  const others = SCHEMES.filter((scheme) => !scheme.startsWith('redi') && !scheme.startsWith('redl'))
  it.each([...others, 'redlock'])(
    'refuses options that the store behind %s: does not have',
    async (scheme) => {
      await expect(open(`${scheme}://localhost`, { fencing: 'durable' })).rejects.toThrow(
        `behind ${scheme}: has no option "fencing"`,
      )
    },
  )

  it('refuses a driver that there is not, also beside a URL', async () => {
    for (const url of ['redis://localhost', 'redlock://a,b,c'])
      await expect(open(url, { driver: 'node-redis' as 'redis' })).rejects.toThrow('driver must be')
  })

  // Where memory: leads, nobody else is to be met.
  const settled = SCHEMES.filter((scheme) => scheme !== 'memory').flatMap((scheme) =>
    ['prefix', 'table', 'schema', 'root', 'migrate', 'Table', 'no-such-setting'].map(
      (setting) => [scheme, setting] as const,
    ),
  )
  it.each(settled)('%s: a URL takes ?%s=, or is refused: nothing is passed over', async (scheme, setting) => {
    const taken: readonly string[] = TAKEN.find(([schemes]) => schemes.test(scheme))?.[1] ?? []
    if (taken.includes(setting)) return
    const place = PLACES[scheme] ?? `${scheme}://127.0.0.1:1`
    await expect(openStore(`${place}?${setting}=x`)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      argument: 'url',
    })
  })

  it('takes two slashes before a relative path for a mistake: it would lead to the root', async () => {
    await expect(openStore('sqlite://nowhere/locks.db')).rejects.toMatchObject({ argument: 'url' })
  })

  it('never shows a password in its refusal', async () => {
    await expect(openStore('nosql://me:hunter2@host')).rejects.toThrow('nosql://me:***@host')
    await expect(openStore('me:hunter2@host')).rejects.not.toThrow('hunter2')
  })

  it('finds a module behind every scheme it lists', async () => {
    // Nothing listens there, or the address makes no sense: what matters is which error comes. All at once: some drivers
    // try for five seconds.
    const outcomeOf = (scheme: string): Promise<unknown> =>
      openStore(`${scheme}://127.0.0.1:1`).then(
        (store) => store.close(),
        (error: unknown) => error,
      )
    const outcomes = await Promise.all(SCHEMES.map(outcomeOf))
    for (const outcome of outcomes)
      expect(String(outcome)).not.toMatch(/ERR_MODULE_NOT_FOUND|is not a function/)
    // Schemes are the same in capitals, for the store too and not only for who looks for it.
    const inCapitals = await Promise.all(SCHEMES.map((scheme) => outcomeOf(scheme.toUpperCase())))
    const codeOf = (outcome: unknown): unknown => (outcome instanceof HoldfastError ? outcome.code : outcome)
    expect(inCapitals.map(codeOf)).toEqual(outcomes.map(codeOf))
  })
})

describe('a URL that is shown', () => {
  it.each([
    ['redis://localhost:6379/2', 'redis://localhost:6379/2'],
    ['redis://:hunter2@localhost', 'redis://:***@localhost'],
    // One password, `a@hunter2,c`, and not two hosts with something before them.
    ['redis+cluster://:a@hunter2,c@h1,h2', 'redis+cluster://***@h1,h2'],
    ['redlock://u:a@hunter2,c@h1,h2', 'redlock://***@h1,h2'],
    ['mysql://me:hunter2@db.example/locks', 'mysql://me:***@db.example/locks'],
    ['redis+sentinel://h1,h2,h3/mymaster', 'redis+sentinel://h1,h2,h3/mymaster'],
    ['redlock://a:hunter2@h1,b:hunter2@h2:7000', 'redlock://a:***@h1,b:***@h2:7000'],
    ['redis://host?password=hunter2&db=1', 'redis://host?password=***&db=1'],
    ['holdfast://host?token=hunter2', 'holdfast://host?token=***'],
    ['sqlite:/var/lib/me@home/locks.db', 'sqlite:/var/lib/me@home/locks.db'],
    ['postgres://me@db/locks', 'postgres://me@db/locks'],
  ])('%s becomes %s', (url, shown) => {
    expect(redact(url)).toBe(shown)
    expect(hasSecret(url)).toBe(url.includes('hunter2'))
  })

  it.each([
    'redis://:hun/ter2@host',
    'redis://:hun@ter2@host',
    'redis://:hun,ter2@host',
    'redis://me:hun?ter2@host',
    'me:hunter2@host',
    'redlock://h1,me:hunter2@h2',
  ])('shows no part of a password even when it is written wrongly: %s', (url) => {
    expect(redact(url)).not.toMatch(/hun|ter2/)
  })
})
