import { describe, expect, it, vi } from 'vitest'

import { lockWish } from '../../../src/cli/lock-option.ts'
import { parse } from '../../../src/cli/parse.ts'
import type { CommandSpec } from '../../../src/cli/spec.ts'
import { scrubbed, storeAddress } from '../../../src/cli/store-option.ts'

const spec = {
  name: 'run',
  usage: 'NAME [options] -- COMMAND',
  summary: '',
  options: { wait: { value: 'TIME', short: 'w', help: '' }, verbose: { short: 'v', help: '' } },
  words: [1, 1],
  takesCommand: true,
  examples: [],
} as const satisfies CommandSpec

describe('the words of a command line', () => {
  it('are options, words, and after -- a command that is not looked into', () => {
    expect(parse(spec, ['job', '-v', '--wait', '5s', '--', 'ls', '-v', '--', '--help'])).toEqual({
      options: { verbose: true, wait: '5s' },
      words: ['job'],
      command: ['ls', '-v', '--', '--help'],
    })
  })

  it('may stand in any order', () => {
    expect(parse(spec, ['-w5s', 'job'])).toMatchObject({
      options: { wait: '5s' },
      words: ['job'],
      command: [],
    })
  })

  it('ask for help only before --', () => {
    expect(parse(spec, ['--help'])).toBe('help')
    expect(parse(spec, ['job', '--', 'ls', '--help'])).not.toBe('help')
  })

  it.each([
    [[], 'needs more words'],
    [['job', 'ls'], '"ls" is one word too many. Put -- before the command'],
    [['job', '--wiat', '5s'], '--wiat'],
    [['job', '--wait'], '--wait'],
    [['job', '--verbose=yes'], '--verbose'],
  ])('%j is refused', (argv, message) => {
    expect(() => parse(spec, argv)).toThrow(message)
  })
})

describe('a lock as it is wished for', () => {
  it('is a mutex for 15 seconds, waited for half a minute, unless told otherwise', () => {
    const defaults = {
      name: 'a',
      mode: 'mutex',
      permits: 1,
      capacity: 1,
      wait: 30_000,
      patient: false,
      ttl: 15_000,
    }
    expect(lockWish('a', {})).toEqual(defaults)
    expect(lockWish('a', { of: '4', wait: 'forever' })).toEqual({
      ...defaults,
      mode: 'permits',
      capacity: 4,
      wait: Infinity,
      patient: true,
    })
  })

  it.each([
    [{ permits: '2' }, '--of'],
    [{ permits: '5', of: '4' }, 'cannot be had'],
    [{ permits: '0', of: '4' }, '--permits'],
    [{ shared: true, of: '4' }, 'exclude each other'],
    [{ shared: true, write: true }, 'exclude each other'],
    [{ ttl: '10ms' }, 'at least 1s'],
  ] as const)('%j is refused', (given, message) => {
    expect(() => lockWish('a', given)).toThrow(message)
  })
})

describe('the environment of a command', () => {
  it('keeps a URL without a secret, and nothing that opens a store otherwise', () => {
    const environment = { PATH: '/bin', HOLDFAST_TOKEN_FILE: '/secret' }
    expect(scrubbed({ ...environment, HOLDFAST_URL: 'redis://host' })).toEqual({
      PATH: '/bin',
      HOLDFAST_URL: 'redis://host',
    })
    expect(scrubbed({ ...environment, HOLDFAST_URL: 'redis://:secret@host' })).toEqual({ PATH: '/bin' })
  })
})

it('takes a variable that is empty for one that is not set', () => {
  for (const name of ['HOLDFAST_URL', 'HOLDFAST_TOKEN_FILE', 'HOLDFAST_CA_FILE']) vi.stubEnv(name, '')
  expect(() => storeAddress({})).toThrow('Which store?')
  expect(storeAddress({ store: 'redis://host' })).toEqual({ url: 'redis://host', shown: 'redis://host' })
  vi.unstubAllEnvs()
})
