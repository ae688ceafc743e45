import { readFileSync } from 'node:fs'

// Tests of users' own code in Jest, which loads CommonJS: in JavaScript, and in TypeScript as a Nest project has it.

const TEST = `
test('a lock in memory', async () => {
  const holdfast = new Holdfast(memoryStore())
  const held = await holdfast.mutex('m').run((lease) => lease.held)
  await holdfast.close()
  expect(held).toBe(true)
})

test('a lock at a server, through the driver that is installed', async () => {
  const holdfast = await open(process.env.URLS!.split(' ')[0]!)
  expect(await holdfast.mutex('m').run(() => 'locked')).toBe('locked')
  await holdfast.close()
})

test('errors are of one class', async () => {
  await expect(open('nothing://here')).rejects.toThrow(HoldfastError)
})
`
const IN_TYPESCRIPT = `
import { Holdfast, HoldfastError, open } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
${TEST}`
const IN_JAVASCRIPT = `
const { Holdfast, HoldfastError, open } = require('holdfast')
const { memoryStore } = require('holdfast/memory')
${TEST.replaceAll('!', '')}`

const FAKED_LATER = `
const { Holdfast } = require('holdfast')
const { memoryStore } = require('holdfast/memory')
const { TestLocks } = require('holdfast/testing')

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

test('locks do not feel fake timers', async () => {
  const holdfast = new Holdfast(memoryStore(), { ttl: 60_000 })
  const lease = await holdfast.mutex('m').acquire()
  await jest.advanceTimersByTimeAsync(3_600_000)
  expect(lease.held).toBe(true)
  await expect(holdfast.mutex('m').acquire({ wait: 20 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
  await lease.release()
  await holdfast.close()
})

test('locks that go by the global time move with them', async () => {
  const locks = new TestLocks({ time: 'global' })
  await locks.others.mutex('m').acquire()
  const late = expect(locks.holdfast.mutex('m').acquire({ wait: 5000 })).rejects.toThrow('5000 ms')
  await jest.advanceTimersByTimeAsync(5000)
  await late
  await locks.close()
})

test('locks with a clock of their own go by that', async () => {
  const locks = new TestLocks()
  const lease = await locks.holdfast.mutex('m', { ttl: 5000, renew: false }).acquire()
  await locks.advance(5000)
  expect(lease.held).toBe(false)
  await locks.close()
})
`
const BESIDE_A_DRIVER = `
const { open } = require('holdfast')

afterEach(() => void jest.useRealTimers())

test.each(['ioredis', 'redis'])('a lock through %s, while timers are fake', async (driver) => {
  const holdfast = await open(process.env.URLS.split(' ')[0], { driver, prefix: driver })
  ${settingFor('Jest')}
  const lease = await holdfast.mutex('m').acquire()
  jest.advanceTimersByTime(3_600_000)
  expect(lease.held).toBe(true)
  const next = holdfast.mutex('m').acquire()
  await lease.release()
  await (await next).release()
  await holdfast.close()
})
`
const FAKED_GLOBALLY = `
test('the timers are fake from the beginning', () => expect(setTimeout.clock).toBeDefined())
${FAKED_LATER.replace(/^(before|after)Each.*$/gm, '')}
`

/** What `nest new` writes: version 11, and the one before. */
const NEST = {
  config: {
    moduleFileExtensions: ['js', 'json', 'ts'],
    rootDir: 'src',
    testRegex: '.*\\.spec\\.ts$',
    transform: { '^.+\\.(t|j)s$': 'ts-jest' },
    testEnvironment: 'node',
  },
  11: { module: 'nodenext', moduleResolution: 'nodenext', isolatedModules: true, target: 'es2023' },
  10: { module: 'commonjs', target: 'es2021' },
}
const COMMON = { strict: true, skipLibCheck: true, esModuleInterop: true, types: ['node', 'jest'] }

export function jestChecks({ full, env }) {
  const jest = (folder, files) => async () => {
    const named = Object.entries(files).map(([name, content]) => [`${folder}/${name}`, content])
    full.files(Object.fromEntries(named))
    await full.tool('jest/bin/jest.js', ['--rootDir', full.path(folder), '--runInBand', '--ci'], env, folder)
  }
  const typescript = (compilerOptions) => ({
    'package.json': { private: true, jest: NEST.config },
    'tsconfig.json': { compilerOptions: { ...COMMON, ...compilerOptions } },
    'src/lock.spec.ts': IN_TYPESCRIPT,
  })
  return {
    'Jest: JavaScript, without any setting': jest('jest', {
      'package.json': { private: true },
      'lock.test.js': IN_JAVASCRIPT,
    }),
    'Jest: fake timers': jest('jest-fakes', {
      'package.json': { private: true },
      'lock.test.js': FAKED_LATER,
    }),
    'Jest: fake timers beside a real Redis, as the guide names them': jest('jest-driver-fakes', {
      'package.json': { private: true },
      'lock.test.js': BESIDE_A_DRIVER,
    }),
    'Jest: fake timers from the beginning, with the setting that the guide names': jest('jest-global-fakes', {
      'package.json': { private: true },
      'jest.config.js': settingOfTheGuide(),
      'lock.test.js': FAKED_GLOBALLY,
    }),
    'Jest: ts-jest, as in a new Nest project': jest('jest-nest-11', typescript(NEST[11])),
    'Jest: ts-jest, as in an older Nest project': jest('jest-nest-10', typescript(NEST[10])),
  }
}

function settingOfTheGuide() {
  const [, setting] = /^```js\n([\s\S]*?)^```$/m.exec(guide())
  return setting
}

/** Of the table of what must not be fake beside a real store. */
function settingFor(runner) {
  const [, setting] = new RegExp(`^\\| ${runner} \\| ` + '`(.*)` \\|$', 'm').exec(guide())
  return setting
}

function guide() {
  return readFileSync(new URL('../../docs/guides/testing.md', import.meta.url), 'utf8')
}
