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
    'Jest: ts-jest, as in a new Nest project': jest('jest-nest-11', typescript(NEST[11])),
    'Jest: ts-jest, as in an older Nest project': jest('jest-nest-10', typescript(NEST[10])),
  }
}
