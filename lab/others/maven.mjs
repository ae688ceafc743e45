// The Java libraries, from Maven Central, and the small programs around them, compiled once.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { locate } from '../../scripts/services/find.mjs'

const FOLDER = fileURLToPath(new URL('java/', import.meta.url))
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast-lab/java/', import.meta.url))
const run = promisify(execFile)
const TOO_LONG_MS = 10 * 60_000
const PROGRAMS = { redisson: 'RedissonLocks', curator: 'CuratorLocks' }

const pathFile = (kind) => join(CACHE, `${kind}.classpath`)

/** What `java -cp` needs. After `prepare`. */
export function classpathOf(kind) {
  return [join(CACHE, kind), readFileSync(pathFile(kind), 'utf8').trim()].join(delimiter)
}

/** Why it cannot be run here; undefined if it can. */
export async function prepare(kind) {
  for (const command of ['java', 'javac', 'mvn'])
    if (locate({ command }) === undefined) return `there is no ${command} on this machine`
  mkdirSync(join(CACHE, kind), { recursive: true })
  try {
    if (!existsSync(pathFile(kind))) {
      const goal = ['dependency:build-classpath', `-Dmdep.outputFile=${pathFile(kind)}`]
      await run('mvn', ['-q', '-B', '-f', join(FOLDER, `${kind}.xml`), ...goal], { timeout: TOO_LONG_MS })
    }
    const sources = ['Lines', PROGRAMS[kind]].map((name) => join(FOLDER, `${name}.java`))
    await run('javac', ['-cp', classpathOf(kind), '-d', join(CACHE, kind), ...sources])
    return undefined
  } catch (error) {
    return `it could not be had from Maven Central: ${String(error.message).split('\n')[0]}`
  }
}
