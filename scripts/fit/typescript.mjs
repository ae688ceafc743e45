// One program, compiled with each of TypeScript's ways to find modules, every declaration checked; and run.

const PROGRAM = `
import { Holdfast, HoldfastError, LockTimeoutError } from 'holdfast'
import type { Lease } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import { redisStore } from 'holdfast/redis'
import { mysqlStore } from 'holdfast/mysql'
import { postgresStore } from 'holdfast/postgres'
import { sqliteStore } from 'holdfast/sqlite'
import { zookeeperStore } from 'holdfast/zookeeper'
import { ZooKeeper } from 'holdfast/zookeeper-client'
import { memcachedStore } from 'holdfast/memcached'
import { quorumStore } from 'holdfast/quorum'
import { holdfastStore } from 'holdfast/remote'
import { startServer } from 'holdfast/server'
import { once } from 'holdfast/recipes'
import { step } from 'holdfast/store'

class Locks {
  constructor(readonly holdfast: Holdfast) {}
  token(): Promise<bigint> {
    return this.holdfast.mutex('m').run((lease: Lease) => lease.token)
  }
}
class Mine extends LockTimeoutError {}

const locks = new Locks(new Holdfast(memoryStore()))
const others = [redisStore, mysqlStore, postgresStore, sqliteStore, zookeeperStore, ZooKeeper, memcachedStore]
const more = [quorumStore, holdfastStore, startServer, once, step]
void locks.token().then(async (token) => {
  const wrong: unknown = await locks.holdfast.inspect('').catch((error: unknown) => error)
  const told = wrong instanceof HoldfastError && Mine.name === 'Mine'
  console.log(typeof token, told, [...others, ...more].every((one) => typeof one === 'function'))
  await locks.holdfast.close()
})
`

const CASES = {
  'commonjs and node10': ['commonjs', { module: 'commonjs', moduleResolution: 'node10' }],
  'node16 in CommonJS': ['commonjs', { module: 'node16' }],
  'nodenext in CommonJS': ['commonjs', { module: 'nodenext' }],
}

export function typescriptChecks({ bare }) {
  const checks = {}
  for (const [name, [type, options]] of Object.entries(CASES)) {
    checks[`TypeScript: ${name}`] = async () => {
      const folder = `typescript-${name.replaceAll(' ', '-')}`
      const compilerOptions = {
        ...options,
        target: 'es2022',
        strict: true,
        skipLibCheck: false,
        types: ['node'],
      }
      bare.files({
        [`${folder}/package.json`]: { type, private: true },
        [`${folder}/tsconfig.json`]: { compilerOptions, files: ['main.ts'] },
        [`${folder}/main.ts`]: PROGRAM,
      })
      await bare.tool('typescript/lib/tsc.js', ['--project', folder])
      const said = (await bare.node(`${folder}/main.js`)).trim()
      if (said !== 'bigint true true') throw new Error(`it said: ${said}`)
    }
  }
  return checks
}
